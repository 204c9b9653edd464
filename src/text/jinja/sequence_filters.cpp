// Filters on lists and dicts.
#include <algorithm>

#include "base/error.h"
#include "text/jinja/builtins.h"
#include "text/jinja/look_up.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

// value.a.b.0 for "a.b.0", the syntax of attribute names in filters. A missing attribute gives
// `default_value`, if given.
Value attribute_path(Runtime& runtime, Value value, const Value& path,
                     const std::optional<Value>& default_value = {}) {
  const auto step_to = [&](const Value& key) {
    value = item(runtime, value, key);
    if (value.is(Kind::Undefined) && default_value && !default_value->is(Kind::None))
      value = *default_value;
  };
  if (path.is_whole()) {
    step_to(path);
    return value;
  }
  std::string_view rest = text_of(path, "attribute").bytes();
  for (;;) {
    const std::string_view name = rest.substr(0, rest.find('.'));
    const bool is_index = !name.empty() && name.size() < 10 &&
                          name.find_first_not_of("0123456789") == std::string_view::npos;
    const Value key = is_index ? Value::of_integer(std::stoll(std::string(name)))
                               : runtime.text(MarkedText(name));
    step_to(key);
    if (name.size() == rest.size()) return value;
    rest.remove_prefix(name.size() + 1);
  }
}

// The value to compare: the element or its attribute. Texts are in lower case unless
// `case_sensitive`.
Value sort_key(Runtime& runtime, const Value& value, const std::optional<Value>& path,
               bool case_sensitive) {
  const bool has_path = path && !path->is(Kind::None);
  const Value key = has_path ? attribute_path(runtime, value, *path) : value;
  return key.is(Kind::String) && !case_sensitive ? in_case(runtime, *key.text, Case::Lower) : key;
}

Value iterator(Runtime& runtime, Values values) {
  Value list = runtime.list(std::move(values));
  list.is_iterator = true;
  return list;
}

Value count(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("length", {});
  return Value::of_integer(static_cast<std::int64_t>(length(runtime, value)));
}

Value first(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("first", {});
  const Values all = elements(runtime, value);
  return all.empty() ? runtime.undefined("the first element of an empty sequence") : all.front();
}

Value last(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("last", {});
  if (value.is_iterator) throw Failure("last: expected a list, found {}", kind_name(value));
  const Values all = elements(runtime, value);
  return all.empty() ? runtime.undefined("the last element of an empty sequence") : all.back();
}

Value list(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("list", {});
  return runtime.list(elements(runtime, value));
}

Value join(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("join", {"d", "attribute"});
  Values values = elements(runtime, value);
  if (given[1] && !given[1]->is(Kind::None)) {
    for (Value& one : values) one = attribute_path(runtime, one, *given[1]);
  }
  return joined(runtime, values, given[0] ? to_text(runtime, *given[0]) : MarkedText());
}

Value default_filter(Runtime&, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("default", {"default_value", "boolean"});
  const bool absent =
      value.is(Kind::Undefined) || (given[1] && is_true(*given[1]) && !is_true(value));
  static const MarkedText kEmpty;
  return absent ? given[0].value_or(Value::of_text(kEmpty)) : value;
}

Value reverse(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("reverse", {});
  Values all = elements(runtime, value);
  std::ranges::reverse(all);
  if (!value.is(Kind::String)) return iterator(runtime, std::move(all));
  return joined(runtime, all, {});
}

Value sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("sort", {"reverse", "case_sensitive", "attribute"});
  Values all = elements(runtime, value), keys;
  const bool case_sensitive = given[1] && is_true(*given[1]);
  for (const Value& one : all) {
    if (!given[2] || !given[2]->is(Kind::String)) {
      keys.push_back(sort_key(runtime, one, given[2], case_sensitive));
      continue;
    }
    Values several;  // attribute="age,name"
    std::string_view rest = given[2]->bytes();
    for (bool more = true; more;) {
      const std::string_view path = rest.substr(0, rest.find(','));
      more = path.size() < rest.size();
      rest.remove_prefix(path.size() + (more ? 1 : 0));
      several.push_back(sort_key(runtime, one, runtime.text(MarkedText(path)), case_sensitive));
    }
    keys.push_back(runtime.list(std::move(several)));
  }
  sort_by(runtime, all, keys, given[0] && is_true(*given[0]));
  return runtime.list(std::move(all));
}

Value dictsort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("dictsort", {"case_sensitive", "by", "reverse"});
  if (!value.is(Kind::Dict)) throw Failure("dictsort: expected a dict, found {}", kind_name(value));
  const std::string by = given[1] ? text_of(*given[1], "dictsort").bytes() : "key";
  if (by != "key" && by != "value") throw Failure("dictsort: 'by': expected 'key' or 'value'");
  Values pairs, keys;
  for (const auto& [key, one] : value.dict->items) {
    pairs.push_back(runtime.tuple({key, one}));
    keys.push_back(sort_key(runtime, by == "key" ? key : one, {}, given[0] && is_true(*given[0])));
  }
  sort_by(runtime, pairs, keys, given[2] && is_true(*given[2]));
  return runtime.list(std::move(pairs));
}

Value unique(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("unique", {"case_sensitive", "attribute"});
  Values chosen, keys;
  for (const Value& one : elements(runtime, value)) {
    const Value key = sort_key(runtime, one, given[1], given[0] && is_true(*given[0]));
    if (std::ranges::any_of(keys, [&](const Value& known) { return equal(runtime, known, key); })) {
      continue;
    }
    keys.push_back(key);
    chosen.push_back(one);
  }
  return iterator(runtime, std::move(chosen));
}

Value extreme(Runtime& runtime, const Value& value, const Arguments& arguments, bool largest) {
  const auto given = arguments.take(largest ? "max" : "min", {"case_sensitive", "attribute"});
  const bool case_sensitive = given[0] && is_true(*given[0]);
  const Values all = elements(runtime, value);
  if (all.empty()) return runtime.undefined("the largest or smallest element of an empty sequence");
  Value best = all.front();
  for (const Value& one : all) {
    const Value a = sort_key(runtime, one, given[1], case_sensitive);
    const Value b = sort_key(runtime, best, given[1], case_sensitive);
    if (largest ? less(runtime, b, a) : less(runtime, a, b)) best = one;
  }
  return best;
}
Value min(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return extreme(runtime, value, arguments, false);
}
Value max(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return extreme(runtime, value, arguments, true);
}

Value sum(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("sum", {"attribute", "start"});
  Value total = given[1].value_or(Value::of_integer(0));
  if (total.is(Kind::String))
    throw Failure("sum: expected a 'start' other than a string (join concatenates strings)");
  for (const Value& one : elements(runtime, value)) {
    const bool has_path = given[0] && !given[0]->is(Kind::None);
    total = binary(runtime, "+", total, has_path ? attribute_path(runtime, one, *given[0]) : one);
  }
  return total;
}

Value items(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("items", {});
  if (value.is(Kind::Undefined)) return iterator(runtime, {});
  if (!value.is(Kind::Dict)) throw Failure("items: expected a dict, found {}", kind_name(value));
  Values pairs;
  for (const auto& [key, one] : value.dict->items) pairs.push_back(runtime.tuple({key, one}));
  return iterator(runtime, std::move(pairs));
}

// map('filter', arguments) or map(attribute='name', default=...).
Value map(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (!is_true(value)) return iterator(runtime, {});  // also for None, as in Jinja
  Values values = elements(runtime, value);
  if (arguments.by_place.empty()) {
    const auto given = arguments.take("map", {"attribute", "default"}, 1);
    for (Value& one : values) {
      runtime.step();
      one = attribute_path(runtime, one, *given[0], given[1]);
    }
    return iterator(runtime, std::move(values));
  }
  const std::string& name = text_of(arguments.by_place[0], "map").bytes();
  Arguments rest = arguments;
  rest.by_place.erase(rest.by_place.begin());
  for (Value& one : values) one = apply_filter(runtime, name, one, rest);
  return iterator(runtime, std::move(values));
}

// select('test', arguments) or, if `by_attribute`, selectattr('name', 'test', arguments).
template <bool wanted, bool by_attribute>
Value chosen(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (!is_true(value)) return iterator(runtime, {});  // also for None, as in Jinja
  Arguments rest = arguments;
  Value path;
  if (by_attribute) {
    if (rest.by_place.empty()) throw Failure("selectattr: argument 'attribute' is missing");
    path = rest.by_place.front();
    rest.by_place.erase(rest.by_place.begin());
  }
  std::string test;
  if (!rest.by_place.empty()) {
    test = text_of(rest.by_place.front(), "select").bytes();
    rest.by_place.erase(rest.by_place.begin());
  }
  Values result;
  for (const Value& one : elements(runtime, value)) {
    runtime.step();
    const Value tested = by_attribute ? attribute_path(runtime, one, path) : one;
    const bool passes = test.empty() ? is_true(tested) : apply_test(runtime, test, tested, rest);
    if (passes == wanted) result.push_back(one);
  }
  return iterator(runtime, std::move(result));
}

}  // namespace

FilterFunction find_sequence_filter(std::string_view name) {
  static constexpr Named<FilterFunction> kFilters[] = {
      {"length", count},
      {"count", count},
      {"first", first},
      {"last", last},
      {"list", list},
      {"join", join},
      {"default", default_filter},
      {"d", default_filter},
      {"reverse", reverse},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"min", min},
      {"max", max},
      {"sum", sum},
      {"items", items},
      {"map", map},
      {"select", chosen<true, false>},
      {"reject", chosen<false, false>},
      {"selectattr", chosen<true, true>},
      {"rejectattr", chosen<false, true>},
  };
  return look_up(kFilters, name);
}

FilterFunction find_filter(std::string_view name) {
  const FilterFunction text = find_text_filter(name);
  return text != nullptr ? text : find_sequence_filter(name);
}

Value apply_filter(Runtime& runtime, std::string_view name, const Value& value,
                   const Arguments& arguments) {
  runtime.step();
  const FilterFunction filter = find_filter(name);
  if (filter == nullptr) throw Failure("the filter '{}' is not supported", printable(name, 40));
  return filter(runtime, value, arguments);
}

}  // namespace stagecraft::jinja
