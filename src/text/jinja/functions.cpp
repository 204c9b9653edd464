// The functions that every template can call.
#include <array>

#include "base/error.h"
#include "text/jinja/builtins.h"
#include "text/jinja/look_up.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

constexpr std::int64_t kMaxRange = 100'000;  // the limit of Jinja's sandbox
constexpr std::size_t kMaxDateFormat = 200;

class Function : public Object {
 public:
  using Body = Value (*)(Runtime& runtime, const Arguments& arguments);
  Function(std::string_view name, Body body) : name_(name), body_(body) {}
  std::string name() const override { return "function " + name_; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    return body_(runtime, arguments);
  }

 private:
  std::string name_;
  Body body_;
};

Value range(Runtime& runtime, const Arguments& arguments) {
  const auto given = arguments.take("range", {"start", "stop", "step"}, 1);
  const std::int64_t begin = given[1] ? whole_of(*given[0], "range") : 0;
  const std::int64_t end = whole_of(given[1] ? *given[1] : *given[0], "range");
  const std::int64_t step = given[2] ? whole_of(*given[2], "range") : 1;
  if (step == 0) throw Failure("range: expected a step other than 0");
  const bool is_empty = step > 0 ? begin >= end : begin <= end;
  Values values;
  for (std::int64_t i = begin; !is_empty && (step > 0 ? i < end : i > end);) {
    if (static_cast<std::int64_t>(values.size()) >= kMaxRange) {
      throw Failure("range: expected at most {} numbers", kMaxRange);
    }
    values.push_back(Value::of_integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  runtime.step(values.size() / 16);
  return runtime.list(std::move(values));
}

// namespace(a=1) or namespace(dict)
Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  if (arguments.by_place.size() > 1) throw Failure("namespace: expected at most one dict");
  Value result = runtime.object<Namespace>();
  auto& space = static_cast<Namespace&>(*result.object);
  for (const Value& given : arguments.by_place) {
    if (!given.is(Kind::Dict)) {
      throw Failure("namespace: expected a dict, found {}", kind_name(given));
    }
    for (const auto& [name, value] : given.dict->items) {
      space.set(runtime, text_of(name, "namespace").bytes(), value);
    }
  }
  for (const auto& [name, value] : arguments.by_name) space.set(runtime, name, value);
  return result;
}

// dict(a=1), dict(other) or dict(other, a=1)
Value make_dict(Runtime& runtime, const Arguments& arguments) {
  if (arguments.by_place.size() > 1) throw Failure("dict: expected at most one dict");
  Dict made;
  for (const Value& given : arguments.by_place) {
    if (!given.is(Kind::Dict)) throw Failure("dict: expected a dict, found {}", kind_name(given));
    made = *given.dict;
  }
  runtime.step(made.items.size() * (1 + arguments.by_name.size()));
  for (const auto& [name, value] : arguments.by_name) {
    const auto old = std::ranges::find_if(made.items, [&](const auto& item) {
      return item.first.is(Kind::String) && item.first.bytes() == name;
    });
    if (old != made.items.end()) {
      old->second = value;
    } else {
      made.items.emplace_back(runtime.text(MarkedText(name)), value);
    }
  }
  return runtime.dict(std::move(made));
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const Value message = *arguments.take("raise_exception", {"message"}, 1)[0];
  throw Failure("the template refuses: {}", printable(to_text(runtime, message).bytes(), 300));
}

Value strftime_now(Runtime& runtime, const Arguments& arguments) {
  const Value given = *arguments.take("strftime_now", {"format"}, 1)[0];
  const std::string& format = text_of(given, "strftime_now").bytes();
  if (format.size() > kMaxDateFormat || format.find('\0') != std::string::npos) {
    throw Failure("strftime_now: expected a format of at most {} characters", kMaxDateFormat);
  }
  if (format.empty()) return runtime.text({});
  // A width ("%9999Y") would make a date of any length. Dates that do not fit are rejected.
  std::array<char, 4096> buffer;
  const std::size_t size =
      std::strftime(buffer.data(), buffer.size(), format.c_str(), &runtime.now());
  if (size == 0) throw Failure("strftime_now: the format gives an empty or too long text");
  return runtime.text(MarkedText(std::string_view(buffer.data(), size)));
}

}  // namespace

std::optional<Value> Namespace::attribute(Runtime& runtime, std::string_view name) {
  runtime.step(1 + values_.size() / 8);
  for (const auto& [known, value] : values_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(Runtime& runtime, std::string_view name, const Value& value) {
  if (name.starts_with('_')) {
    throw Failure("namespace: expected a name that does not begin with '_', found '{}'",
                  printable(name, 40));
  }
  runtime.step(1 + values_.size() / 8);
  runtime.look_at(name.size());
  for (auto& [known, old] : values_) {
    if (known == name) {
      old = value;
      return;
    }
  }
  runtime.use_bytes(sizeof(Value) + sizeof(std::string) + name.size());
  values_.emplace_back(name, value);
}

std::optional<Value> find_function(Runtime& runtime, std::string_view name) {
  static constexpr Named<Function::Body> kFunctions[] = {
      {"range", range},
      {"namespace", make_namespace},
      {"dict", make_dict},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  const Function::Body body = look_up(kFunctions, name);
  if (body == nullptr) return std::nullopt;
  return runtime.object<Function>(name, body);
}

}  // namespace stagecraft::jinja
