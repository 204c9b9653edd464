#pragma once

#include <ctime>
#include <deque>
#include <memory>

#include "text/jinja/failure.h"
#include "text/jinja/value.h"

namespace stagecraft::jinja {

// What a template may use before it is stopped.
struct Limits {
  std::size_t steps = 10'000'000;              // evaluated expressions, 16 bytes of text read ...
  std::size_t bytes = std::size_t{128} << 20;  // of all texts, lists and dicts ever created
  int depth = 300;                             // of nested expressions, statements and macros
};

// Memory, limits and clock of one rendering. All values live until the Runtime is destroyed; none
// is freed earlier, so values may refer to each other in any way.
class Runtime {
 public:
  Runtime(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}

  Value text(MarkedText text);
  Value list(Values values) { return sequence(Value::Kind::List, std::move(values)); }
  Value tuple(Values values) { return sequence(Value::Kind::Tuple, std::move(values)); }
  Value dict(Dict dict);
  // The undefined value. `what` names the missing thing in an error when it is used.
  Value undefined(std::string what);
  template <class T, class... Args>
  Value object(Args&&... args) {
    return value_of(keep(std::make_unique<T>(std::forward<Args>(args)...)));
  }
  // Keeps an object alive as long as the values.
  template <class T>
  T& keep(std::unique_ptr<T> owned) {
    use_bytes(sizeof(T) + kKeeping);
    T& reference = *owned;
    objects_.push_back(std::shared_ptr<void>(std::move(owned)));
    return reference;
  }

  // Count work and memory. They throw Failure if a limit is exceeded.
  void step(std::size_t count = 1);
  void use_bytes(std::size_t count);
  void look_at(std::size_t bytes) { step(1 + bytes / 16); }

  // Counts one level of nesting during its lifetime.
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

  static constexpr std::size_t kKeeping = 64;  // the cost of storing one object

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
