// Filters that make texts and numbers.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/number.h"
#include "text/jinja/builtins.h"
#include "text/jinja/characters.h"
#include "text/jinja/look_up.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"
#include "text/unicode.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

// Filters accept any value and convert it to a string first.
Value as_text(Runtime& runtime, const Value& value) {
  return value.is(Kind::String) ? value : runtime.text(to_text(runtime, value));
}

template <Case which>
Value cased(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("upper, lower or capitalize", {});
  return in_case(runtime, *as_text(runtime, value).text, which);
}

// Unlike str.title, a word begins only after blanks, hyphens and brackets.
Value title(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("title", {});
  MarkedText result;
  bool begins_word = true;
  const Value text = as_text(runtime, value);
  runtime.step(text.text->size() / 4);
  text.text->for_each_stretch(0, text.text->size(), [&](std::string_view bytes, bool typed) {
    std::string changed;
    while (!bytes.empty()) {
      const CodePoint c = first_code_point(bytes);
      append_in_case(changed, c.value, begins_word, false);
      begins_word = is_space(c.value) ||
                    std::u32string_view(U"-({[<").find(c.value) != std::u32string_view::npos;
      bytes.remove_prefix(c.length);
    }
    result.append(changed, typed);
  });
  return runtime.text(std::move(result));
}

Value trim(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("trim", {"chars"});
  return stripped(runtime, as_text(runtime, value), given[0], true, true);
}

Value replace(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("replace", {"old", "new", "count"}, 2);
  const bool all = !given[2] || given[2]->is(Kind::None);
  return replaced(runtime, *as_text(runtime, value).text, *as_text(runtime, *given[0]).text,
                  *as_text(runtime, *given[1]).text, all ? -1 : whole_of(*given[2], "replace"));
}

Value string(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("string", {});
  return as_text(runtime, value);
}

Value escape(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("escape", {});
  return escaped(runtime, as_text(runtime, value));
}

Value safe(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("safe", {});
  Value result = as_text(runtime, value);
  result.is_markup = true;
  return result;
}

Value indent(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("indent", {"width", "first", "blank"});
  MarkedText margin;
  if (given[0] && given[0]->is(Kind::String)) {
    runtime.look_at(given[0]->text->size());
    margin = *given[0]->text;
  } else {
    const std::int64_t width = given[0] ? whole_of(*given[0], "indent") : 4;
    if (width > 1000) throw Failure("indent: expected a width of at most 1000, found {}", width);
    margin =
        MarkedText(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
  }
  const bool first = given[1] && is_true(*given[1]);
  const bool blank = given[2] && is_true(*given[2]);
  const MarkedText& text = text_of(value, "indent");
  runtime.step(text.size());
  const std::vector<Line> lines = lines_of(text.bytes() + '\n');  // Jinja adds it, too
  MarkedText result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [begin, end, next] = lines[i];
    if (i == 0 ? first : end > begin || blank) {
      runtime.use_bytes(margin.size());
      result.append(margin);
    }
    result.append_part(text, begin, end);
    runtime.step();
    if (i + 1 == lines.size()) break;
    // Whatever ended the line becomes "\n", typed if that was typed.
    text.for_each_stretch(end, end + 1,
                          [&](std::string_view, bool typed) { result.append("\n", typed); });
  }
  return runtime.text(std::move(result));
}

Value tojson(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given =
      arguments.take("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = given[0] && is_true(*given[0]);
  style.sort_keys = given[3] && is_true(*given[3]);
  if (given[1] && given[1]->is(Kind::String)) {
    runtime.look_at(given[1]->text->size());
    style.line_indent = given[1]->bytes();
  } else if (given[1] && !given[1]->is(Kind::None)) {
    const std::int64_t width = whole_of(*given[1], "tojson");
    if (width > 1000) throw Failure("tojson: expected an indent of at most 1000, found {}", width);
    style.line_indent =
        std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  if (style.line_indent) style.item_end = ",";
  if (given[2] && !given[2]->is(Kind::None)) {
    if (!given[2]->is_sequence() || given[2]->list->size() != 2) {
      throw Failure("tojson: expected two separators, found {}", kind_name(*given[2]));
    }
    style.item_end = text_of((*given[2]->list)[0], "tojson").bytes();
    style.key_end = text_of((*given[2]->list)[1], "tojson").bytes();
    runtime.look_at(style.item_end.size() + style.key_end.size());
  }
  return runtime.text(to_json(runtime, value, style));
}

// The number that Python's int() and float() read from a text; nullopt if they would raise an
// exception.
std::optional<double> number_in(Runtime& runtime, const Value& value) {
  if (value.is_numeric()) return value.real();
  if (!value.is(Kind::String)) return std::nullopt;
  const std::string& bytes = value.bytes();
  runtime.step(bytes.size());
  const std::size_t begin = leading_space(bytes);
  const std::string text = bytes.substr(begin, bytes.size() - begin - trailing_space(bytes));
  // number_of reads nan, inf and 1e5 as Python does. 0x1p3 and nan(1) must be rejected.
  if (text.empty() || text.find_first_of("xXpP( \t\n") != std::string::npos) return std::nullopt;
  return number_of(text);
}

Value to_int(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("int", {"default", "base"});
  if (value.is(Kind::Undefined)) throw Failure("int: {}", kind_name(value));
  if (given[1]) throw Failure("int: a base is not supported");
  if (value.is_whole()) return Value::of_integer(value.whole());
  const auto number = number_in(runtime, value);
  if (!number || !std::isfinite(*number)) return given[0].value_or(Value::of_integer(0));
  if (std::abs(*number) >= 9.2e18) throw Failure("int: the result has more than 63 bits");
  if (value.is(Kind::String)) {
    char* end = nullptr;
    const long long exact = std::strtoll(value.bytes().c_str(), &end, 10);
    if (std::string_view(end).find_first_not_of(" \t\r\n") == std::string_view::npos) {
      return Value::of_integer(exact);
    }
  }
  return Value::of_integer(static_cast<std::int64_t>(*number));
}

Value to_float(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("float", {"default"});
  if (value.is(Kind::Undefined)) throw Failure("float: {}", kind_name(value));
  const auto number = number_in(runtime, value);
  return number ? Value::of_number(*number) : given[0].value_or(Value::of_number(0.0));
}

Value absolute(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.take("abs", {});
  if (value.is(Kind::Float)) return Value::of_number(std::abs(value.number));
  return whole_of(value, "abs") < 0 ? negative(value) : Value::of_integer(value.whole());
}

Value round(Runtime&, const Value& value, const Arguments& arguments) {
  const auto given = arguments.take("round", {"precision", "method"});
  if (!value.is_numeric()) throw Failure("round: expected a number, found {}", kind_name(value));
  const std::int64_t precision = given[0] ? whole_of(*given[0], "round") : 0;
  const std::string method = given[1] ? text_of(*given[1], "round").bytes() : "common";
  if (precision < -15 || precision > 15)
    throw Failure("round: expected a precision of at most 15 digits");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::of_number(std::ceil(value.real() * scale) / scale);
  if (method == "floor") return Value::of_number(std::floor(value.real() * scale) / scale);
  if (method != "common") throw Failure("round: expected common, ceil or floor");
  if (value.is_whole() && precision >= 0) return Value::of_integer(value.whole());
  if (precision < 0) {  // powers of ten are exact, their inverses are not
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    const double rounded = std::nearbyint(value.real() / unit) * unit;
    return value.is_whole() && std::abs(rounded) < 9e18
               ? Value::of_integer(static_cast<std::int64_t>(rounded))
               : Value::of_number(rounded);
  }
  // As in Python: to the nearest decimal; the exact value of the number decides ties.
  return Value::of_number(number_of(fmt::format("{:.{}f}", value.real(), precision)).value());
}

}  // namespace

FilterFunction find_text_filter(std::string_view name) {
  static constexpr Named<FilterFunction> kFilters[] = {
      {"upper", cased<Case::Upper>},
      {"lower", cased<Case::Lower>},
      {"capitalize", cased<Case::Capitalized>},
      {"title", title},
      {"trim", trim},
      {"replace", replace},
      {"string", string},
      {"safe", safe},
      {"escape", escape},
      {"e", escape},
      {"indent", indent},
      {"tojson", tojson},
      {"int", to_int},
      {"float", to_float},
      {"abs", absolute},
      {"round", round},
  };
  return look_up(kFilters, name);
}

}  // namespace stagecraft::jinja
