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

// What a template computes with: Python's values. Texts, lists, dicts and objects lie in the heap
// of a Runtime and are never changed once they can be seen (namespaces apart), so a Value is a few
// words and is copied freely.
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
  bool is_markup = false;  // a string for HTML (x | safe): what is added to it is escaped
  union {
    bool boolean;
    std::int64_t integer = 0;
    double number;
    const MarkedText* text;
    const Values* list;  // List and Tuple
    const jinja::Dict* dict;
    Object* object;
    const std::string* missing;  // Undefined: what is not there, for errors; may be null
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
  static Value of_text(const MarkedText& text) {  // which must outlive it
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

// In the order in which they were put in.
struct Dict {
  std::vector<std::pair<Value, Value>> items;

  // The value of a key that is a string; nullptr if there is none.
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
  // One for each of `names`, as a function with these parameters takes them; those that are not
  // given are nullopt. Throws Failure if there are others, or fewer than `required`.
  std::vector<std::optional<Value>> take(std::string_view function,
                                         std::initializer_list<std::string_view> names,
                                         std::size_t required = 0) const;
};

// What has attributes of its own, or may be called.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  virtual std::string name() const = 0;  // for errors and where it is printed
  virtual bool is_callable() const { return false; }
  virtual Value call(Runtime& runtime, const Arguments& arguments);
  // nullopt: it has no such attribute.
  virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
};

}  // namespace stagecraft::jinja
