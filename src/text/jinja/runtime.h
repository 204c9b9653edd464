#pragma once

#include <ctime>
#include <deque>
#include <memory>

#include "text/jinja/failure.h"
#include "text/jinja/value.h"

namespace stagecraft::jinja {

// What a template may use up before it is stopped.
struct Limits {
  std::size_t steps = 10'000'000;  // evaluated expressions, 16 bytes of text looked at ...
  std::size_t bytes = std::size_t{128} << 20;  // of all texts, lists and dicts it ever makes
  int depth = 300;                             // expressions, statements and macros in each other
};

// Memory, limits and clock of one rendering. What is made here lives until the Runtime ends: no
// value is ever freed before, so values may refer to each other in any way.
class Runtime {
 public:
  Runtime(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}

  Value text(MarkedText text);
  Value list(Values values) { return sequence(Value::Kind::List, std::move(values)); }
  Value tuple(Values values) { return sequence(Value::Kind::Tuple, std::move(values)); }
  Value dict(Dict dict);
  // The value that is not there; `what` is said when something needs it.
  Value undefined(std::string what);
  template <class T, class... Args>
  Value object(Args&&... args) {
    return value_of(keep(std::make_unique<T>(std::forward<Args>(args)...)));
  }
  // Kept as long as the values are.
  template <class T>
  T& keep(std::unique_ptr<T> owned) {
    use_bytes(sizeof(T) + kKeeping);
    T& reference = *owned;
    objects_.push_back(std::shared_ptr<void>(std::move(owned)));
    return reference;
  }

  // Throws Failure once the template has had enough.
  void step(std::size_t count = 1);
  void use_bytes(std::size_t count);
  void look_at(std::size_t bytes) { step(1 + bytes / 16); }

  // One level deeper as long as it lives.
  class Level {
   public:
    explicit Level(Runtime& runtime) : runtime_(runtime) {
      if (++runtime.depth_ > runtime.limits_.depth) runtime.too_deep();
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --runtime_.depth_; }

   private:
    Runtime& runtime_;
  };

  const std::tm& now() const { return now_; }

 private:
  static Value value_of(Object& object) {
    Value result;
    result.kind = Value::Kind::Object;
    result.object = &object;
    return result;
  }
  Value sequence(Value::Kind kind, Values values);
  [[noreturn]] void too_deep();

  static constexpr std::size_t kKeeping = 64;  // what remembering one thing takes

  Limits limits_;
  std::tm now_;
  std::size_t steps_ = 0;
  std::size_t bytes_ = 0;
  int depth_ = 0;
  std::deque<MarkedText> texts_;
  std::deque<Values> lists_;
  std::deque<Dict> dicts_;
  std::deque<std::string> missing_;
  std::deque<std::shared_ptr<void>> objects_;
};

}  // namespace stagecraft::jinja
