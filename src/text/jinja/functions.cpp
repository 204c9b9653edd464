// The functions that every template has.
#include <array>

#include "base/error.h"
#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

constexpr std::int64_t kMaxRange = 100'000;  // as Jinja's sandbox allows
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

// Prints nothing the first time it is called, its separator from then on.
class Joiner : public Object {
 public:
  explicit Joiner(const Value& separator) : separator_(separator) {}
  std::string name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    arguments.take("joiner", {});
    return std::exchange(used_, true) ? separator_ : runtime.text({});
  }

 private:
  Value separator_;
  bool used_ = false;
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

// The items of dict(a=1) or dict(other): what Namespace and dict begin with.
Dict items_of(Runtime& runtime, const Arguments& arguments, std::string_view function) {
  Dict dict;
  if (arguments.by_place.size() > 1) throw Failure("{}: expected one dict", function);
  if (!arguments.by_place.empty()) {
    const Value& given = arguments.by_place[0];
    if (given.is(Kind::Dict)) {
      dict = *given.dict;
    } else {
      for (const Value& pair : elements(runtime, given)) {
        if (!pair.is_sequence() || pair.list->size() != 2) {
          throw Failure("{}: expected pairs, found {}", function, kind_name(pair));
        }
        put(runtime, dict, (*pair.list)[0], (*pair.list)[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.by_name) {
    put(runtime, dict, runtime.text(MarkedText(name)), value);
  }
  return dict;
}

Value make_dict(Runtime& runtime, const Arguments& arguments) {
  return runtime.dict(items_of(runtime, arguments, "dict"));
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  Value result = runtime.object<Namespace>();
  for (const auto& [name, value] : items_of(runtime, arguments, "namespace").items) {
    static_cast<Namespace*>(result.object)->set(runtime, text_of(name, "namespace").bytes(), value);
  }
  return result;
}

Value make_joiner(Runtime& runtime, const Arguments& arguments) {
  const auto given = arguments.take("joiner", {"sep"});
  return runtime.object<Joiner>(given[0] ? *given[0] : runtime.text(MarkedText(", ")));
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
  // A width ("%9999Y") would make a date of any length; what does not fit is refused.
  std::array<char, 4096> buffer;
  const std::size_t size =
      std::strftime(buffer.data(), buffer.size(), format.c_str(), &runtime.now());
  if (size == 0) throw Failure("strftime_now: the format gives no date");
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
    throw Failure("namespace: expected a name without '_' at its beginning, found '{}'",
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
  static constexpr std::pair<std::string_view, Function::Body> kFunctions[] = {
      {"range", range},
      {"dict", make_dict},
      {"namespace", make_namespace},
      {"joiner", make_joiner},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  for (const auto& [known, body] : kFunctions) {
    if (known == name) return runtime.object<Function>(name, body);
  }
  return std::nullopt;
}

}  // namespace stagecraft::jinja
