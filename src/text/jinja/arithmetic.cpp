// + - * / // % ** on values, and % and ~ on texts.
#include <cmath>

#include "base/error.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

[[noreturn]] void too_large(std::string_view op) {
  throw Failure("'{}': the result has more than 63 bits", op);
}

// Rounds towards minus infinity, as Python does.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == -1 && a == INT64_MIN) too_large("//");
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Value power(const Value& a, const Value& b) {
  if (!a.is_whole() || !b.is_whole() || b.whole() < 0) {
    if (a.real() == 0.0 && b.real() < 0.0) throw Failure("'**': 0 has no negative power");
    if (a.real() < 0.0 && b.real() != std::floor(b.real())) {
      throw Failure("'**': expected a real result, found a complex one");
    }
    const double result = std::pow(a.real(), b.real());
    if (std::isinf(result) && std::isfinite(a.real()) && std::isfinite(b.real())) too_large("**");
    return Value::of_number(result);
  }
  std::int64_t result = 1, base = a.whole();
  for (std::int64_t exponent = b.whole();;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_large("**");
    exponent >>= 1;
    if (exponent == 0) return Value::of_integer(result);
    if (__builtin_mul_overflow(base, base, &base)) {
      too_large("**");
    }
  }
}

Value whole_arithmetic(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (b == 0) {
    throw Failure("'{}': division by 0", op);
  } else if (op == "/") {
    return Value::of_number(static_cast<double>(a) / static_cast<double>(b));
  } else if (op == "//") {
    result = floor_quotient(a, b);
  } else {
    result = b == -1 ? 0 : a % b;
    if (result != 0 && (result < 0) != (b < 0)) result += b;
  }
  if (overflow) too_large(op);
  return Value::of_integer(result);
}

Value real_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return Value::of_number(a + b);
  if (op == "-") return Value::of_number(a - b);
  if (op == "*") return Value::of_number(a * b);
  if (b == 0.0) throw Failure("'{}': division by 0", op);
  if (op == "/") return Value::of_number(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0.0 && (rest < 0.0) != (b < 0.0)) rest += b;
  if (op == "%") return Value::of_number(rest == 0.0 ? std::copysign(0.0, b) : rest);
  // As in CPython: (a - rest) / b is nearly a whole number.
  const double quotient = (a - rest) / b;
  double whole = std::floor(quotient);
  if (quotient - whole > 0.5) whole += 1.0;
  return Value::of_number(quotient == 0.0 ? std::copysign(0.0, a / b) : whole);
}

Value repeated(Runtime& runtime, const Value& value, std::int64_t count) {
  const std::size_t size = value.is(Kind::String) ? value.text->size() : value.list->size();
  const std::size_t times = count < 0 || size == 0 ? 0 : static_cast<std::size_t>(count);
  const std::size_t width = value.is(Kind::String) ? 1 : sizeof(Value);
  // Count the memory before allocating it.
  if (times > (std::size_t{1} << 40) / (size * width + 1)) runtime.use_bytes(SIZE_MAX / 2);
  runtime.use_bytes(times * size * width);
  runtime.step(times);
  if (value.is(Kind::String)) {
    MarkedText text;
    for (std::size_t i = 0; i < times; ++i) text.append(*value.text);
    return runtime.text(std::move(text));
  }
  Values values;
  values.reserve(times * size);
  for (std::size_t i = 0; i < times; ++i) {
    values.insert(values.end(), value.list->begin(), value.list->end());
  }
  return value.is(Kind::List) ? runtime.list(std::move(values)) : runtime.tuple(std::move(values));
}

// a + b. If one is markup, the result is markup, and the other text is escaped.
Value joined_texts(Runtime& runtime, const Value& a, const Value& b) {
  const bool is_markup = a.is_markup || b.is_markup;
  MarkedText text;
  for (const Value& value : {a, b})
    text.append(*(is_markup ? escaped(runtime, value) : value).text);
  Value result = runtime.text(std::move(text));
  result.is_markup = is_markup;
  return result;
}

// '%s is %d' % (a, b), with the conversions that chat templates use.
Value formatted(Runtime& runtime, const MarkedText& format, const Value& arguments) {
  const Values one = {arguments};
  const Values& values = arguments.is(Kind::Tuple) ? *arguments.list : one;
  std::size_t next = 0, begin = 0;
  MarkedText result;
  const std::string& text = format.bytes();
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', begin)) {
    result.append_part(format, begin, at);
    const char kind = at + 1 < text.size() ? text[at + 1] : '\0';
    begin = at + 2;
    if (kind == '%') {
      result.append("%", false);
      continue;
    }
    if (kind != 's' && kind != 'd' && kind != 'i' && kind != 'r') {
      throw Failure("'%': expected %s, %d, %r or %% in the format, found '{}'",
                    printable(text.substr(at, 2)));
    }
    if (next >= values.size()) throw Failure("'%': the format needs more than {} values", next);
    const Value& value = values[next++];
    runtime.step();
    if (kind == 's') {
      result.append(to_text(runtime, value));
    } else if (kind == 'r') {
      const MarkedText list = to_text(runtime, runtime.list({value}));
      result.append_part(list, 1, list.size() - 1);
    } else if (value.is_numeric() && std::abs(value.real()) < 9e18) {
      const std::int64_t whole =
          value.is_whole() ? value.whole() : static_cast<std::int64_t>(value.number);
      result.append(fmt::format("{}", whole), false);
    } else {
      throw Failure("'%': expected a number for %{}, found {}", kind, kind_name(value));
    }
  }
  result.append_part(format, begin, text.size());
  if (next < values.size() && !arguments.is(Kind::Dict)) {
    throw Failure("'%': the format needs {} values, found {}", next, values.size());
  }
  return runtime.text(std::move(result));
}

}  // namespace

Value negative(const Value& value) {
  if (value.is(Kind::Float)) return Value::of_number(-value.number);
  if (!value.is_whole()) throw Failure("'-': expected a number, found {}", kind_name(value));
  return whole_arithmetic("-", 0, value.whole());
}

Value escaped(Runtime& runtime, const Value& text) {
  if (text.is_markup) return text;
  runtime.step(text.text->size());
  runtime.use_bytes(5 * text.text->size());
  MarkedText result;
  text.text->for_each_stretch(0, text.text->size(), [&](std::string_view bytes, bool typed) {
    for (const char c : bytes) {
      switch (c) {
        case '&':
          result.append("&amp;", typed);
          break;
        case '<':
          result.append("&lt;", typed);
          break;
        case '>':
          result.append("&gt;", typed);
          break;
        case '\'':
          result.append("&#39;", typed);
          break;
        case '"':
          result.append("&#34;", typed);
          break;
        default:
          result.append(std::string_view(&c, 1), typed);
      }
    }
  });
  Value markup = runtime.text(std::move(result));
  markup.is_markup = true;
  return markup;
}

Value binary(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (a.is_numeric() && b.is_numeric()) {
    if (op == "**") return power(a, b);
    if (a.is_whole() && b.is_whole()) return whole_arithmetic(op, a.whole(), b.whole());
    return real_arithmetic(op, a.real(), b.real());
  }
  if (op == "+" && a.is(Kind::String) && b.is(Kind::String)) return joined_texts(runtime, a, b);
  if (op == "+" && a.is_sequence() && a.kind == b.kind) {
    runtime.use_bytes((a.list->size() + b.list->size()) * sizeof(Value));
    Values values = *a.list;
    values.insert(values.end(), b.list->begin(), b.list->end());
    return a.is(Kind::List) ? runtime.list(std::move(values)) : runtime.tuple(std::move(values));
  }
  const auto repeatable = [](const Value& v) { return v.is(Kind::String) || v.is_sequence(); };
  if (op == "*" && repeatable(a) && b.is_whole()) return repeated(runtime, a, b.whole());
  if (op == "*" && repeatable(b) && a.is_whole()) return repeated(runtime, b, a.whole());
  if (op == "%" && a.is(Kind::String)) return formatted(runtime, *a.text, b);
  throw Failure("'{}': cannot be applied to {} and {}", op, kind_name(a), kind_name(b));
}

}  // namespace stagecraft::jinja
