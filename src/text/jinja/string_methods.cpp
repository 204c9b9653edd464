// The methods of Python's str that chat templates use.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "text/jinja/characters.h"
#include "text/jinja/look_up.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"
#include "text/unicode.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;
using Given = std::optional<Value>;

bool is_absent(const Given& value) { return !value || value->is(Kind::None); }

Value strip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return stripped(runtime, self, arguments.take("strip", {"chars"})[0], true, true);
}
Value lstrip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return stripped(runtime, self, arguments.take("lstrip", {"chars"})[0], true, false);
}
Value rstrip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return stripped(runtime, self, arguments.take("rstrip", {"chars"})[0], false, true);
}

// startswith and endswith: one string, or a tuple of them.
template <class Matches>
Value any_affix(Runtime& runtime, const Arguments& arguments, std::string_view function,
                const Matches& matches) {
  const Value affix = *arguments.take(function, {"affix"}, 1)[0];
  const Values one = {affix};
  const Values& affixes = affix.is(Kind::Tuple) ? *affix.list : one;
  return Value::of_bool(std::ranges::any_of(affixes, [&](const Value& value) {
    const std::string& bytes = text_of(value, function).bytes();
    runtime.look_at(bytes.size());
    return matches(bytes);
  }));
}

Value startswith(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return any_affix(runtime, arguments, "startswith",
                   [&](const std::string& affix) { return self.bytes().starts_with(affix); });
}
Value endswith(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return any_affix(runtime, arguments, "endswith",
                   [&](const std::string& affix) { return self.bytes().ends_with(affix); });
}

Value removeprefix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value prefix = *arguments.take("removeprefix", {"prefix"}, 1)[0];
  const std::string& bytes = text_of(prefix, "removeprefix").bytes();
  runtime.look_at(bytes.size());
  if (!self.bytes().starts_with(bytes)) return self;
  return runtime.text(self.text->part(bytes.size(), self.text->size()));
}
Value removesuffix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value suffix = *arguments.take("removesuffix", {"suffix"}, 1)[0];
  const std::string& bytes = text_of(suffix, "removesuffix").bytes();
  runtime.look_at(bytes.size());
  if (!self.bytes().ends_with(bytes)) return self;
  return runtime.text(self.text->part(0, self.text->size() - bytes.size()));
}

// A list of the given byte ranges of `text`.
Value pieces(Runtime& runtime, const MarkedText& text, const std::vector<TextSpan>& spans) {
  Values values;
  for (const TextSpan& span : spans)
    values.push_back(runtime.text(text.part(span.begin, span.end)));
  return runtime.list(std::move(values));
}

std::vector<TextSpan> words(std::string_view text, std::int64_t at_most) {
  std::vector<TextSpan> spans;
  std::size_t at = leading_space(text);
  while (at < text.size()) {
    if (at_most >= 0 && spans.size() >= static_cast<std::size_t>(at_most)) {
      spans.push_back({at, text.size()});
      break;
    }
    std::size_t end = at;
    while (end < text.size()) {
      const CodePoint c = first_code_point(text.substr(end));
      if (is_space(c.value)) break;
      end += c.length;
    }
    spans.push_back({at, end});
    at = end + leading_space(text.substr(end));
  }
  return spans;
}

Value split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto given = arguments.take("split", {"sep", "maxsplit"});
  const std::int64_t at_most = given[1] ? whole_of(*given[1], "split") : -1;
  const std::string& text = self.bytes();
  runtime.step(text.size() / 4);
  if (is_absent(given[0])) return pieces(runtime, *self.text, words(text, at_most));
  const std::string& separator = text_of(*given[0], "split").bytes();
  if (separator.empty()) throw Failure("split: the separator is empty");
  count_search(runtime, text, separator);
  std::vector<TextSpan> spans;
  std::size_t begin = 0;
  while (at_most < 0 || spans.size() < static_cast<std::size_t>(at_most)) {
    const std::size_t end = text.find(separator, begin);
    if (end == std::string::npos) break;
    runtime.step();
    spans.push_back({begin, end});
    begin = end + separator.size();
  }
  spans.push_back({begin, text.size()});
  return pieces(runtime, *self.text, spans);
}

Value rsplit(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto given = arguments.take("rsplit", {"sep", "maxsplit"});
  const std::int64_t at_most = given[1] ? whole_of(*given[1], "rsplit") : -1;
  if (at_most < 0) return split(runtime, self, arguments);
  if (is_absent(given[0])) throw Failure("rsplit: expected a separator if maxsplit is given");
  const std::string& separator = text_of(*given[0], "rsplit").bytes();
  if (separator.empty()) throw Failure("rsplit: the separator is empty");
  const std::string& text = self.bytes();
  count_search(runtime, text, separator);
  std::vector<TextSpan> spans;
  std::size_t end = text.size();
  while (spans.size() < static_cast<std::size_t>(at_most) && end >= separator.size()) {
    const std::size_t begin = text.rfind(separator, end - separator.size());
    if (begin == std::string::npos) break;
    runtime.step();
    spans.push_back({begin + separator.size(), end});
    end = begin;
  }
  spans.push_back({0, end});
  std::ranges::reverse(spans);
  return pieces(runtime, *self.text, spans);
}

Value splitlines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto given = arguments.take("splitlines", {"keepends"});
  const bool keep = given[0] && is_true(*given[0]);
  runtime.step(self.bytes().size());
  std::vector<TextSpan> spans;
  for (const Line& line : lines_of(self.bytes())) {
    spans.push_back({line.begin, keep ? line.next : line.end});
  }
  return pieces(runtime, *self.text, spans);
}

Value partition_at(Runtime& runtime, const Value& self, const Arguments& arguments, bool first) {
  const Value separator = *arguments.take("partition", {"sep"}, 1)[0];
  const std::string& bytes = text_of(separator, "partition").bytes();
  if (bytes.empty()) throw Failure("partition: the separator is empty");
  const MarkedText& text = *self.text;
  count_search(runtime, text.bytes(), bytes);
  const std::size_t at = first ? text.bytes().find(bytes) : text.bytes().rfind(bytes);
  const Value empty = runtime.text({});
  if (at == std::string::npos) {
    return first ? runtime.tuple({self, empty, empty}) : runtime.tuple({empty, empty, self});
  }
  const std::size_t end = at + bytes.size();
  return runtime.tuple({runtime.text(text.part(0, at)), runtime.text(text.part(at, end)),
                        runtime.text(text.part(end, text.size()))});
}
Value partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return partition_at(runtime, self, arguments, true);
}
Value rpartition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return partition_at(runtime, self, arguments, false);
}

Value replace_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto given = arguments.take("replace", {"old", "new", "count"}, 2);
  return replaced(runtime, *self.text, text_of(*given[0], "replace"), text_of(*given[1], "replace"),
                  given[2] ? whole_of(*given[2], "replace") : -1);
}

// find, rfind and index, as `function` says.
Value position(Runtime& runtime, const Value& self, const Arguments& arguments,
               std::string_view function) {
  const Value sub = *arguments.take(function, {"sub"}, 1)[0];
  const std::string& needle = text_of(sub, function).bytes();
  const std::string& text = self.bytes();
  count_search(runtime, text, needle);
  const std::size_t at = function == "rfind" ? text.rfind(needle) : text.find(needle);
  if (at != std::string::npos) {
    return Value::of_integer(
        static_cast<std::int64_t>(count_characters(std::string_view(text).substr(0, at))));
  }
  if (function == "index") throw Failure("index: the string does not contain {}", describe(sub));
  return Value::of_integer(-1);
}
Value find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return position(runtime, self, arguments, "find");
}
Value rfind(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return position(runtime, self, arguments, "rfind");
}
Value index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return position(runtime, self, arguments, "index");
}

Value count_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value sub = *arguments.take("count", {"sub"}, 1)[0];
  const std::string& needle = text_of(sub, "count").bytes();
  count_search(runtime, self.bytes(), needle);
  if (needle.empty()) {
    return Value::of_integer(static_cast<std::int64_t>(count_characters(self.bytes())) + 1);
  }
  std::int64_t n = 0;
  for (std::size_t at = 0; (at = self.bytes().find(needle, at)) != std::string::npos;) {
    ++n;
    runtime.step();
    at += needle.size();
  }
  return Value::of_integer(n);
}

Value join_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value values = *arguments.take("join", {"iterable"}, 1)[0];
  const Values parts = elements(runtime, values);
  for (const Value& part : parts) text_of(part, "join");
  return joined(runtime, parts, *self.text);
}

template <Case which>
Value cased_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  arguments.take("upper, lower, title or capitalize", {});
  return in_case(runtime, *self.text, which);
}

// isdigit and similar methods: there is a character, and all are of this kind.
template <bool (*is_kind)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, const Arguments& arguments) {
  arguments.take("isdigit, isalpha or a similar method", {});
  std::string_view rest = self.bytes();
  runtime.step(rest.size() / 4);
  bool all = !rest.empty();
  while (all && !rest.empty()) {
    const CodePoint c = first_code_point(rest);
    all = is_kind(c.value);
    rest.remove_prefix(c.length);
  }
  return Value::of_bool(all);
}
bool is_letter_or_digit(char32_t c) { return is_letter(c) || is_numeric(c); }

template <bool upper_wanted>
Value is_case(Runtime& runtime, const Value& self, const Arguments& arguments) {
  arguments.take("isupper or islower", {});
  std::string_view rest = self.bytes();
  runtime.step(rest.size() / 4);
  bool any = false;
  while (!rest.empty()) {
    const CodePoint c = first_code_point(rest);
    const bool is_upper = to_lower(c.value) != c.value, is_lower = to_upper(c.value) != c.value;
    if (upper_wanted ? is_lower : is_upper) return Value::of_bool(false);
    any = any || is_upper || is_lower;
    rest.remove_prefix(c.length);
  }
  return Value::of_bool(any);
}

// How the fields of a `format` name their values so far.
struct FieldCount {
  std::size_t next = 0;   // the number of fields without a name
  bool numbered = false;  // whether there was one with a number
};

// The value of a field of `format`: "" (the next one), "0" or "name".
const Value& field_value(const Arguments& arguments, std::string_view field, FieldCount& count) {
  if (const auto& named = arguments.by_name; !field.empty()) {
    const auto found = std::ranges::find(named, field, [](const auto& pair) { return pair.first; });
    if (found != named.end()) return found->second;
  }
  const auto place = field.empty() ? std::optional(count.next++) : integer_of<std::size_t>(field);
  if (!place) {  // no such name, or more than a name: "{a.b}", "{!r}", "{:>5}"
    throw Failure(
        "format: expected {{}}, a number or the name of an argument in braces, found '{}'",
        printable(field, 40));
  }
  if (!field.empty()) count.numbered = true;
  if (count.numbered && count.next > 0) {
    throw Failure("format: expected only {{}} or only numbers in braces, found both");
  }
  if (*place >= arguments.by_place.size()) {
    throw Failure("format: expected at least {} values, found {}", *place + 1,
                  arguments.by_place.size());
  }
  return arguments.by_place[*place];
}

Value format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::string_view text = self.bytes();
  MarkedText result;
  std::size_t begin = 0;
  FieldCount count;
  runtime.step(text.size() / 4);
  for (std::size_t at = 0; (at = text.find_first_of("{}", at)) != std::string_view::npos;) {
    result.append_part(*self.text, begin, at);
    if (text.substr(at + 1).starts_with(text[at])) {  // {{ and }} stand for a brace
      result.append_part(*self.text, at, at + 1);
      begin = at += 2;
      continue;
    }
    const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      throw Failure("format: expected {{ and }} in pairs, found a single '{}'", text[at]);
    }
    runtime.step(1 + arguments.by_name.size());
    const MarkedText value =
        to_text(runtime, field_value(arguments, text.substr(at + 1, end - at - 1), count));
    runtime.use_bytes(value.size());
    result.append(value);
    begin = at = end + 1;
  }
  result.append_part(*self.text, begin, text.size());
  return runtime.text(std::move(result));
}

}  // namespace

Method find_string_method(std::string_view name) {
  static constexpr Named<Method> kMethods[] = {
      {"strip", strip},
      {"lstrip", lstrip},
      {"rstrip", rstrip},
      {"startswith", startswith},
      {"endswith", endswith},
      {"removeprefix", removeprefix},
      {"removesuffix", removesuffix},
      {"split", split},
      {"rsplit", rsplit},
      {"splitlines", splitlines},
      {"partition", partition},
      {"rpartition", rpartition},
      {"replace", replace_method},
      {"find", find},
      {"rfind", rfind},
      {"index", index},
      {"count", count_method},
      {"join", join_method},
      {"format", format},
      {"upper", cased_method<Case::Upper>},
      {"lower", cased_method<Case::Lower>},
      {"title", cased_method<Case::Title>},
      {"capitalize", cased_method<Case::Capitalized>},
      {"isspace", all_are<is_space>},
      {"isdigit", all_are<is_decimal>},
      {"isdecimal", all_are<is_decimal>},
      {"isnumeric", all_are<is_numeric>},
      {"isalpha", all_are<is_letter>},
      {"isalnum", all_are<is_letter_or_digit>},
      {"isupper", is_case<true>},
      {"islower", is_case<false>},
  };
  return look_up(kMethods, name);
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = first_code_point(text.substr(at));
    std::size_t after = at + c.length;
    const bool ends_line = (c.value >= 0x0a && c.value <= 0x0d) ||
                           (c.value >= 0x1c && c.value <= 0x1e) || c.value == 0x85 ||
                           c.value == 0x2028 || c.value == 0x2029;
    if (c.value == '\r' && text.substr(after).starts_with('\n')) ++after;
    if (ends_line) {
      lines.push_back({begin, at, after});
      begin = after;
    }
    at = after;
  }
  if (begin < text.size()) lines.push_back({begin, text.size(), text.size()});
  return lines;
}

Value stripped(Runtime& runtime, const Value& text, const std::optional<Value>& characters,
               bool left, bool right) {
  const std::string_view bytes = text.bytes();
  std::size_t begin = 0, end = bytes.size();
  runtime.look_at(bytes.size());
  if (is_absent(characters)) {
    if (left) begin = leading_space(bytes);
    if (right) end -= trailing_space(bytes.substr(begin));
  } else {
    const std::string_view set = text_of(*characters, "strip").bytes();
    // In UTF-8, searching the bytes of a whole character finds only that character.
    const auto in_set = [&](std::string_view c) { return set.find(c) != std::string_view::npos; };
    while (left && begin < end) {
      const std::size_t length = first_code_point(bytes.substr(begin)).length;
      if (!in_set(bytes.substr(begin, length))) break;
      begin += length;
      runtime.look_at(set.size());
    }
    while (right && begin < end) {
      const std::size_t length = last_code_point(bytes.substr(begin, end - begin)).length;
      if (!in_set(bytes.substr(end - length, length))) break;
      end -= length;
      runtime.look_at(set.size());
    }
  }
  return runtime.text(text.text->part(begin, end));
}

Value replaced(Runtime& runtime, const MarkedText& text, const MarkedText& from,
               const MarkedText& to, std::int64_t at_most) {
  MarkedText result;
  const std::string& bytes = text.bytes();
  std::size_t begin = 0;
  count_search(runtime, bytes, from.bytes());
  for (std::int64_t n = 0; at_most < 0 || n < at_most; ++n) {
    // An empty `from` is found between all characters.
    std::size_t at = begin;
    if (!from.empty()) {
      at = bytes.find(from.bytes(), begin);
    } else if (n > 0) {
      at = begin < bytes.size()
               ? begin + first_code_point(std::string_view(bytes).substr(begin)).length
               : std::string::npos;
    }
    if (at == std::string::npos) break;
    runtime.step();
    runtime.use_bytes(to.size());
    result.append_part(text, begin, at);
    result.append(to);
    begin = at + from.size();
  }
  result.append_part(text, begin, bytes.size());
  return runtime.text(std::move(result));
}

Value in_case(Runtime& runtime, const MarkedText& text, Case which) {
  MarkedText result;
  bool begins_word = true;  // for Title; for Capitalized: is at the beginning of the text
  runtime.step(text.size() / 4);
  text.for_each_stretch(0, text.size(), [&](std::string_view bytes, bool typed) {
    std::string changed;
    while (!bytes.empty()) {
      const CodePoint c = first_code_point(bytes);
      const bool up = which == Case::Upper || (which != Case::Lower && begins_word);
      append_in_case(changed, c.value, up, which == Case::Upper);
      begins_word = which == Case::Title && to_upper(c.value) == to_lower(c.value);
      bytes.remove_prefix(c.length);
    }
    result.append(changed, typed);
  });
  return runtime.text(std::move(result));
}

Value joined(Runtime& runtime, const Values& values, const MarkedText& separator) {
  MarkedText result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) {
      runtime.use_bytes(separator.size());
      result.append(separator);
    }
    const MarkedText part = to_text(runtime, values[i]);
    runtime.use_bytes(part.size());
    runtime.look_at(part.size());
    result.append(part);
  }
  return runtime.text(std::move(result));
}

}  // namespace stagecraft::jinja
