#include "text/jinja/operations.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "text/jinja/characters.h"
#include "text/jinja/methods.h"
#include "text/jinja/printing.h"
#include "text/unicode.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

[[noreturn]] void not_defined(const Value& value) {
  throw Failure("{} is not defined", value.missing != nullptr ? *value.missing : "a value");
}

// Exact for whole numbers, even where double would round them to the same value.
int three_way(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) {
    return a.whole() < b.whole() ? -1 : a.whole() > b.whole() ? 1 : 0;
  }
  return a.real() < b.real() ? -1 : a.real() > b.real() ? 1 : 0;
}

// The offset for a Python index into a sequence of `size`; nullopt if it is out of range.
std::optional<std::size_t> place(std::int64_t index, std::size_t size) {
  if (index < 0) index += static_cast<std::int64_t>(size);
  if (index < 0 || index >= static_cast<std::int64_t>(size)) return std::nullopt;
  return static_cast<std::size_t>(index);
}

std::string what_is_missing(const Value& value, std::string_view name) {
  return fmt::format("'{}' of {}", printable(name, 40), kind_name(value));
}

const Value* find(Runtime& runtime, const Dict& dict, const Value& key) {
  runtime.step(1 + dict.items.size() / 4);
  for (const auto& [known, value] : dict.items) {
    if (equal(runtime, known, key)) return &value;
  }
  return nullptr;
}

std::optional<Value> element(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is(Kind::Dict)) {
    const Value* found = find(runtime, *value.dict, key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (!key.is_whole()) return std::nullopt;
  if (value.is_sequence() && !value.is_iterator) {
    const auto at = place(key.whole(), value.list->size());
    return at ? std::optional((*value.list)[*at]) : std::nullopt;
  }
  if (value.is(Kind::String)) {
    runtime.look_at(value.text->size());
    const auto at = place(key.whole(), count_characters(value.bytes()));
    if (!at) return std::nullopt;
    const std::size_t begin = byte_of_character(value.bytes(), *at);
    const std::size_t length =
        first_code_point(std::string_view(value.bytes()).substr(begin)).length;
    return runtime.text(value.text->part(begin, begin + length));
  }
  return std::nullopt;
}

std::optional<Value> own_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (value.is(Kind::Object)) return value.object->attribute(runtime, name);
  return method(runtime, value, name);
}

}  // namespace

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::Undefined:
    case Kind::None:
      return false;
    case Kind::Bool:
      return value.boolean;
    case Kind::Integer:
      return value.integer != 0;
    case Kind::Float:
      return value.number != 0.0;
    case Kind::String:
      return !value.text->empty();
    case Kind::List:
    case Kind::Tuple:
      return value.is_iterator || !value.list->empty();
    case Kind::Dict:
      return !value.dict->items.empty();
    case Kind::Object:
      return true;
  }
  return false;
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  const Runtime::Level level(runtime);
  runtime.step();
  if (a.is_numeric() && b.is_numeric()) {
    return a.is_whole() && b.is_whole() ? a.whole() == b.whole() : a.real() == b.real();
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::String:
      runtime.look_at(std::min(a.text->size(), b.text->size()));
      return a.bytes() == b.bytes();
    case Kind::List:
    case Kind::Tuple:
      return std::equal(a.list->begin(), a.list->end(), b.list->begin(), b.list->end(),
                        [&](const Value& x, const Value& y) { return equal(runtime, x, y); });
    case Kind::Dict:
      return a.dict->items.size() == b.dict->items.size() &&
             std::ranges::all_of(a.dict->items, [&](const auto& item) {
               const Value* other = find(runtime, *b.dict, item.first);
               return other != nullptr && equal(runtime, item.second, *other);
             });
    case Kind::Object:
      return a.object == b.object;
    default:
      return true;  // None, undefined
  }
}

bool less(Runtime& runtime, const Value& a, const Value& b) {
  const Runtime::Level level(runtime);
  runtime.step();
  if (a.is_numeric() && b.is_numeric()) return three_way(a, b) < 0;
  if (a.is(Kind::String) && b.is(Kind::String)) {
    runtime.look_at(std::min(a.text->size(), b.text->size()));
    return a.bytes() < b.bytes();  // UTF-8 has the order of its characters
  }
  if (a.is_sequence() && a.kind == b.kind) {
    for (std::size_t i = 0; i < std::min(a.list->size(), b.list->size()); ++i) {
      const Value &x = (*a.list)[i], &y = (*b.list)[i];
      if (!equal(runtime, x, y)) return less(runtime, x, y);
    }
    return a.list->size() < b.list->size();
  }
  for (const Value& value : {a, b}) {
    if (value.is(Kind::Undefined)) not_defined(value);
  }
  throw Failure("'<': cannot compare {} with {}", kind_name(a), kind_name(b));
}

bool contains(Runtime& runtime, const Value& container, const Value& value) {
  if (container.is(Kind::String)) {
    if (!value.is(Kind::String)) {
      throw Failure("'in': expected a string to look for, found {}", kind_name(value));
    }
    count_search(runtime, container.bytes(), value.bytes());
    return container.bytes().find(value.bytes()) != std::string::npos;
  }
  if (container.is(Kind::Dict)) return find(runtime, *container.dict, value) != nullptr;
  for (const Value& one : elements(runtime, container)) {
    if (equal(runtime, one, value)) return true;
  }
  return false;
}

bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return equal(runtime, a, b);
  if (op == "!=") return !equal(runtime, a, b);
  if (op == "in") return contains(runtime, b, a);
  if (op == "not in") return !contains(runtime, b, a);
  if (a.is_numeric() && b.is_numeric() && (std::isnan(a.real()) || std::isnan(b.real())))
    return false;
  if (op == "<") return less(runtime, a, b);
  if (op == ">") return less(runtime, b, a);
  if (op == "<=") return !less(runtime, b, a);
  return !less(runtime, a, b);
}

Value attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (value.is(Kind::Undefined)) not_defined(value);
  runtime.look_at(name.size());
  if (auto own = own_attribute(runtime, value, name)) return *own;
  if (value.is(Kind::Dict)) {
    runtime.step(1 + value.dict->items.size() / 4);
    if (const Value* found = value.dict->find(name)) return *found;
  }
  return runtime.undefined(what_is_missing(value, name));
}

Value item(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is(Kind::Undefined)) not_defined(value);
  if (auto found = element(runtime, value, key)) return *found;
  if (!key.is(Kind::String)) return runtime.undefined(what_is_missing(value, describe(key)));
  if (auto own = own_attribute(runtime, value, key.bytes())) return *own;
  return runtime.undefined(what_is_missing(value, key.bytes()));
}

Value slice(Runtime& runtime, const Value& value, const Value& first, const Value& last,
            const Value& step) {
  if (value.is(Kind::Undefined)) not_defined(value);
  if ((!value.is_sequence() || value.is_iterator) && !value.is(Kind::String)) {
    throw Failure("[:]: expected a list or a string, found {}", kind_name(value));
  }
  for (const Value& bound : {first, last, step}) {
    if (!bound.is(Kind::None) && !bound.is_whole()) {
      throw Failure("[:]: expected a whole number, found {}", kind_name(bound));
    }
  }
  const std::int64_t by = step.is(Kind::None) ? 1 : step.whole();
  if (by == 0) throw Failure("[:]: expected a step other than 0");
  const bool is_text = value.is(Kind::String);
  if (is_text) runtime.look_at(value.text->size());
  const auto size =
      static_cast<std::int64_t>(is_text ? count_characters(value.bytes()) : value.list->size());
  const auto bound = [&](const Value& given, std::int64_t default_value) {
    if (given.is(Kind::None)) return default_value;
    const std::int64_t index = given.whole() < 0 ? given.whole() + size : given.whole();
    return std::clamp<std::int64_t>(index, by < 0 ? -1 : 0, by < 0 ? size - 1 : size);
  };
  const std::int64_t begin = bound(first, by < 0 ? size - 1 : 0);
  const std::int64_t end = bound(last, by < 0 ? -1 : size);
  if (is_text && by == 1) {
    const std::size_t from = byte_of_character(value.bytes(), static_cast<std::size_t>(begin));
    const std::size_t to = byte_of_character(value.bytes(), static_cast<std::size_t>(end));
    return runtime.text(value.text->part(from, std::max(from, to)));
  }
  const Values all = is_text ? elements(runtime, value) : Values();
  const Values& source = is_text ? all : *value.list;
  Values chosen;
  for (std::int64_t i = begin; by > 0 ? i < end : i > end;) {
    chosen.push_back(source[static_cast<std::size_t>(i)]);
    runtime.step();
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (value.is(Kind::List)) return runtime.list(std::move(chosen));
  if (value.is(Kind::Tuple)) return runtime.tuple(std::move(chosen));
  MarkedText text;
  for (const Value& character : chosen) text.append(*character.text);
  return runtime.text(std::move(text));
}

Values elements(Runtime& runtime, const Value& value) {
  switch (value.kind) {
    case Kind::Undefined:
      return {};
    case Kind::List:
    case Kind::Tuple:
      runtime.step(1 + value.list->size() / 16);
      return *value.list;
    case Kind::Dict: {
      Values keys;
      for (const auto& [key, unused] : value.dict->items) keys.push_back(key);
      runtime.step(1 + keys.size() / 16);
      return keys;
    }
    case Kind::String: {
      Values characters;
      value.text->for_each_stretch(0, value.text->size(), [&](std::string_view bytes, bool typed) {
        while (!bytes.empty()) {
          const std::size_t length = first_code_point(bytes).length;
          MarkedText one;
          one.append(bytes.substr(0, length), typed);
          characters.push_back(runtime.text(std::move(one)));
          runtime.step();
          bytes.remove_prefix(length);
        }
      });
      return characters;
    }
    default:
      throw Failure("expected something to iterate over, found {}", kind_name(value));
  }
}

std::size_t length(Runtime& runtime, const Value& value) {
  if (value.is_iterator) throw Failure("length: expected a list, found {}", kind_name(value));
  switch (value.kind) {
    case Kind::Undefined:
      return 0;
    case Kind::List:
    case Kind::Tuple:
      return value.list->size();
    case Kind::Dict:
      return value.dict->items.size();
    case Kind::String:
      runtime.look_at(value.text->size());
      return count_characters(value.bytes());
    default:
      throw Failure("length: expected a list, a dict or a string, found {}", kind_name(value));
  }
}

void sort_by(Runtime& runtime, Values& list, const Values& keys, bool reverse) {
  // Not std::sort: here a comparison may throw or contradict itself (NaN).
  std::vector<std::size_t> order(list.size()), merged(list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto goes_first = [&](std::size_t a, std::size_t b) {  // a stays before b
    return reverse ? !less(runtime, keys[a], keys[b]) : !less(runtime, keys[b], keys[a]);
  };
  for (std::size_t width = 1; width < order.size(); width *= 2) {
    for (std::size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, order.size());
      const std::size_t end = std::min(begin + 2 * width, order.size());
      std::size_t left = begin, right = middle;
      for (std::size_t at = begin; at < end; ++at) {
        const bool take_left =
            right == end || (left < middle && goes_first(order[left], order[right]));
        merged[at] = take_left ? order[left++] : order[right++];
      }
    }
    order.swap(merged);
  }
  Values sorted;
  for (const std::size_t i : order) sorted.push_back(list[i]);
  list = std::move(sorted);
}

void put(Runtime& runtime, Dict& dict, const Value& key, const Value& value) {
  if (key.is(Kind::List) || key.is(Kind::Dict)) {
    throw Failure("expected a hashable key for a dict, found {}", kind_name(key));
  }
  runtime.step(1 + dict.items.size() / 4);
  for (auto& [known, old] : dict.items) {
    if (equal(runtime, known, key)) {
      old = value;
      return;
    }
  }
  dict.items.emplace_back(key, value);
}

void count_search(Runtime& runtime, std::string_view text, std::string_view needle) {
  const double cost = static_cast<double>(text.size()) * static_cast<double>(needle.size() + 64);
  runtime.step(1 + static_cast<std::size_t>(cost / 1024.0));
}

}  // namespace stagecraft::jinja
