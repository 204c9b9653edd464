#include "text/jinja/printing.h"

#include <cmath>

#include "base/error.h"
#include "text/jinja/characters.h"
#include "text/jinja/operations.h"
#include "text/unicode.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

// Calls each(character, its bytes, typed) for every character of `text`.
template <class Each>
void for_each_character(const MarkedText& text, const Each& each) {
  text.for_each_stretch(0, text.size(), [&](std::string_view bytes, bool typed) {
    while (!bytes.empty()) {
      const CodePoint c = first_code_point(bytes);
      each(c.value, bytes.substr(0, c.length), typed);
      bytes.remove_prefix(c.length);
    }
  });
}

std::string escaped(char32_t c) {
  if (c < 0x100) return fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  return fmt::format("\\U{:08x}", static_cast<unsigned>(c));
}

class Writer {
 public:
  explicit Writer(Runtime& runtime) : runtime_(runtime) {}

  void str(const Value& value) {
    if (value.is(Kind::String)) {
      runtime_.look_at(value.text->size());
      result_.append(*value.text);
    } else if (!value.is(Kind::Undefined)) {
      repr(value);
    }
  }

  void repr(const Value& value) {
    const Runtime::Level level(runtime_);
    runtime_.step();
    switch (value.kind) {
      case Kind::Undefined:
        return put("Undefined");
      case Kind::None:
        return put("None");
      case Kind::Bool:
        return put(value.boolean ? "True" : "False");
      case Kind::Integer:
        return put(fmt::format("{}", value.integer));
      case Kind::Float:
        return put(number_text(value.number));
      case Kind::String:
        return quoted(*value.text);
      case Kind::List:
        return sequence('[', *value.list, "]");
      case Kind::Tuple:
        return sequence('(', *value.list, value.list->size() == 1 ? ",)" : ")");
      case Kind::Dict:
        return dict(*value.dict);
      case Kind::Object:
        return put("<" + value.object->name() + ">");
    }
  }

  MarkedText take() { return std::move(result_); }

 private:
  void put(std::string_view text) {
    runtime_.use_bytes(text.size());
    result_.append(text, false);
  }

  void sequence(char open, const Values& values, std::string_view close) {
    put(std::string_view(&open, 1));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) put(", ");
      repr(values[i]);
    }
    put(close);
  }

  void dict(const Dict& dict) {
    put("{");
    for (std::size_t i = 0; i < dict.items.size(); ++i) {
      if (i > 0) put(", ");
      repr(dict.items[i].first);
      put(": ");
      repr(dict.items[i].second);
    }
    put("}");
  }

  void quoted(const MarkedText& text) {
    runtime_.step(text.size());
    runtime_.use_bytes(text.size());
    const bool has_single = text.bytes().find('\'') != std::string::npos;
    const bool has_double = text.bytes().find('"') != std::string::npos;
    const char32_t quote = has_single && !has_double ? U'"' : U'\'';
    put(quote == U'"' ? "\"" : "'");
    for_each_character(text, [&](char32_t c, std::string_view bytes, bool typed) {
      if (c == quote || c == U'\\') {
        result_.append("\\" + std::string(bytes), typed);
      } else if (c == U'\n' || c == U'\r' || c == U'\t') {
        result_.append(c == U'\n' ? "\\n" : c == U'\r' ? "\\r" : "\\t", typed);
      } else {
        result_.append(is_printable(c) ? bytes : escaped(c), typed);
      }
    });
    put(quote == U'"' ? "\"" : "'");
  }

  Runtime& runtime_;
  MarkedText result_;
};

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void write(const Value& value) {
    const Runtime::Level level(runtime_);
    runtime_.step();
    switch (value.kind) {
      case Kind::None:
        return put("null");
      case Kind::Bool:
        return put(value.boolean ? "true" : "false");
      case Kind::Integer:
        return put(fmt::format("{}", value.integer));
      case Kind::Float:
        return put(number(value.number));
      case Kind::String:
        return quoted(*value.text);
      case Kind::List:
      case Kind::Tuple:
        return members('[', value.list->size(), ']',
                       [&](std::size_t i) { write((*value.list)[i]); });
      case Kind::Dict:
        return dict(*value.dict);
      case Kind::Undefined:
      case Kind::Object:
        throw Failure("tojson: expected a value that JSON can express, found {}", kind_name(value));
    }
  }

  MarkedText take() { return std::move(result_); }

 private:
  void put(std::string_view text) {
    runtime_.use_bytes(text.size());
    result_.append(text, false);
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return number_text(value);
  }

  template <class Each>
  void members(char open, std::size_t count, char close, const Each& each) {
    put(std::string_view(&open, 1));
    ++indent_;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) put(style_.item_end);
      line();
      each(i);
    }
    --indent_;
    if (count > 0) line();
    put(std::string_view(&close, 1));
  }

  void line() {
    if (!style_.line_indent) return;
    put("\n");
    for (std::size_t i = 0; i < indent_; ++i) put(*style_.line_indent);
  }

  void dict(const Dict& dict) {
    Values keys, values;
    for (const auto& [key, value] : dict.items) {
      keys.push_back(key);
      values.push_back(value);
    }
    if (style_.sort_keys) {
      sort_by(runtime_, values, keys, false);
      sort_by(runtime_, keys, Values(keys), false);
    }
    members('{', keys.size(), '}', [&](std::size_t i) {
      const Value& key = keys[i];
      if (key.is(Kind::String)) {
        quoted(*key.text);
      } else {
        quoted(MarkedText(key_text(key)));
      }
      put(style_.key_end);
      write(values[i]);
    });
  }

  static std::string key_text(const Value& key) {
    switch (key.kind) {
      case Kind::None:
        return "null";
      case Kind::Bool:
        return key.boolean ? "true" : "false";
      case Kind::Integer:
        return fmt::format("{}", key.integer);
      case Kind::Float:
        return number(key.number);
      default:
        throw Failure("tojson: expected a key that JSON can express, found {}", kind_name(key));
    }
  }

  void quoted(const MarkedText& text) {
    runtime_.step(text.size());
    runtime_.use_bytes(text.size());
    put("\"");
    for_each_character(text, [&](char32_t c, std::string_view bytes, bool typed) {
      result_.append(escaped_json(c, bytes), typed);
    });
    put("\"");
  }

  std::string escaped_json(char32_t c, std::string_view bytes) const {
    constexpr std::string_view kFrom = "\"\\\b\f\n\r\t", kTo = "\"\\bfnrt";
    if (c < 0x80) {
      const std::size_t simple = kFrom.find(static_cast<char>(c));
      if (simple != std::string_view::npos) return {'\\', kTo[simple]};
    }
    const auto unit = [](char32_t u) { return fmt::format("\\u{:04x}", static_cast<unsigned>(u)); };
    if (c < 0x20) return unit(c);
    if (!style_.ascii || c < 0x80) return std::string(bytes);
    if (c < 0x10000) return unit(c);
    return unit(0xd800 + ((c - 0x10000) >> 10)) + unit(0xdc00 + ((c - 0x10000) & 0x3ff));
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  MarkedText result_;
  std::size_t indent_ = 0;
};

}  // namespace

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";  // fmt would write its sign
  const std::string text = fmt::format("{}", number);
  const bool has_only_digits = text.find_first_not_of("-0123456789") == std::string::npos;
  return has_only_digits ? text + ".0" : text;
}

MarkedText to_text(Runtime& runtime, const Value& value) {
  Writer writer(runtime);
  writer.str(value);
  return writer.take();
}

MarkedText to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  writer.write(value);
  return writer.take();
}

std::string kind_name(const Value& value) {
  switch (value.kind) {
    case Kind::Undefined:
      return value.missing != nullptr ? *value.missing + ", which is not defined" : "nothing";
    case Kind::None:
      return "None";
    case Kind::Bool:
      return value.boolean ? "True" : "False";
    case Kind::Integer:
    case Kind::Float:
      return "a number";
    case Kind::String:
      return "a string";
    case Kind::List:
      return value.is_iterator ? "an iterator ('| list' makes it a list)" : "a list";
    case Kind::Tuple:
      return "a tuple";
    case Kind::Dict:
      return "a dict";
    case Kind::Object:
      return value.object->name();
  }
  return "a value";
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case Kind::Integer:
      return fmt::format("{}", value.integer);
    case Kind::Float:
      return number_text(value.number);
    case Kind::String:
      return "'" + printable(value.bytes(), 40) + "'";
    default:
      return kind_name(value);
  }
}

}  // namespace stagecraft::jinja
