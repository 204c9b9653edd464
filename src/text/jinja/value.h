#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/marked_text.h"

namespace stagecraft::jinja {

class Runtime;
class Object;
struct Value;

using Values = std::vector<Value>;
struct Dict;

// A value in a template, as in Python. Texts, lists, dicts and objects belong to a Runtime and do
// not change once a template can see them (except namespaces). So a Value is small and is copied
// freely.
struct Value {
  enum class Kind : unsigned char {
    Undefined,
    None,
    Bool,
    Integer,
    Float,
    String,
    List,
    Tuple,
    Dict,
    Object,  // a macro, a function, a namespace, `loop`
  };

  Kind kind = Kind::Undefined;
  bool is_markup = false;  // a string for HTML (x | safe): text added to it is escaped
  // A list that Python makes while it is read (x | select): it is true, even if it turns out to be
  // empty, and it has neither a length nor an element [0].
  bool is_iterator = false;
  union {
    bool boolean;
    std::int64_t integer;
    double number;
    const MarkedText* text;
    const Values* list;  // List and Tuple
    const jinja::Dict* dict;
    Object* object;
    const std::string* missing = nullptr;  // Undefined: what is missing, for errors; may be null
  };

  static Value none() { return of(Kind::None); }
  static Value of_bool(bool value) {
    Value result = of(Kind::Bool);
    result.boolean = value;
    return result;
  }
  static Value of_integer(std::int64_t value) {
    Value result = of(Kind::Integer);
    result.integer = value;
    return result;
  }
  static Value of_text(const MarkedText& text) {  // `text` must outlive the result
    Value result = of(Kind::String);
    result.text = &text;
    return result;
  }
  static Value of_number(double value) {
    Value result = of(Kind::Float);
    result.number = value;
    return result;
  }

  bool is(Kind k) const { return kind == k; }
  bool is_sequence() const { return kind == Kind::List || kind == Kind::Tuple; }
  bool is_whole() const { return kind == Kind::Bool || kind == Kind::Integer; }
  bool is_numeric() const { return is_whole() || kind == Kind::Float; }
  std::int64_t whole() const { return kind == Kind::Bool ? boolean : integer; }
  double real() const { return kind == Kind::Float ? number : static_cast<double>(whole()); }
  const std::string& bytes() const { return text->bytes(); }

 private:
  static Value of(Kind kind) {
    Value result;
    result.kind = kind;
    return result;
  }
};

// Items are in insertion order.
struct Dict {
  std::vector<std::pair<Value, Value>> items;

  // The value for a key that is a string; null if there is none.
  const Value* find(std::string_view key) const {
    for (const auto& [name, value] : items) {
      if (name.is(Value::Kind::String) && name.bytes() == key) return &value;
    }
    return nullptr;
  }
};

// The arguments of a call, a filter or a test.
struct Arguments {
  Values by_place;
  std::vector<std::pair<std::string, Value>> by_name;

  bool empty() const { return by_place.empty() && by_name.empty(); }
  // Returns one argument per name in `names`, as for a function with these parameters; nullopt for
  // those not given. Throws Failure if there are other arguments, or fewer than `required`.
  std::vector<std::optional<Value>> take(std::string_view function,
                                         std::initializer_list<std::string_view> names,
                                         std::size_t required = 0) const;
};

// A value that has attributes or can be called.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  virtual std::string name() const = 0;  // for errors and printing
  virtual bool is_callable() const { return false; }
  virtual Value call(Runtime& runtime, const Arguments& arguments);
  // nullopt if it has no such attribute.
  virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
};

}  // namespace stagecraft::jinja
