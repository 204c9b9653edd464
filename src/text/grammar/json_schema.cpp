#include "text/grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "base/number.h"
#include "text/grammar/gbnf_text.h"
#include "text/grammar/grammar.h"
#include "text/grammar/json_other_keys.h"
#include "text/grammar/json_pattern.h"
#include "text/grammar/json_pointer.h"
#include "text/grammar/json_range.h"
#include "text/grammar/json_schema_objects.h"

namespace stagecraft {
namespace {

// Two different decimal numbers with at most so many digits are different as double, too.
constexpr std::size_t kExactDigits = 15;

// The least decimals that stand for `number`; "" if it has too many digits.
std::string decimal_text(double number) {
  if (!(std::abs(number) < 1e15)) return "";
  for (std::size_t n = 0; n <= kExactDigits; ++n) {
    std::string text = fmt::format("{:.{}f}", number, n);
    if (number_of(text) == number) return text;
  }
  return "";
}

RangeBound bound_of(JsonNode value, bool exclusive, bool of_integers) {
  const bool is_whole = value.is_integer() || value.is_whole();
  std::string text = is_whole ? json_text(value) : "";
  if (!is_whole && value.is_number()) text = decimal_text(value.number());
  RangeBound bound{.exclusive = exclusive};
  bound.negative = text.starts_with('-') && value.number() != 0;
  if (text.starts_with('-')) text.erase(0, 1);
  bound.whole = text.substr(0, text.find('.'));
  if (bound.whole.size() < text.size()) bound.fraction = text.substr(bound.whole.size() + 1);
  const bool fits = bound.whole.size() + bound.fraction.size() <= kExactDigits;
  if (text.empty() || !(fits || (of_integers && is_whole))) {
    value.refuse(of_integers ? "a whole number of 64 bits" : "a number of at most 15 digits");
  }
  return bound;
}

struct CommonRule {
  std::string_view name, body;
  std::initializer_list<std::string_view> uses;
};

// White space, digits and exponents are bounded, so that a model cannot repeat them forever.
const CommonRule kCommon[] = {
    {"ws", R"(" "? | "\n" [ \t]{0,20})", {}},
    {"char",
     R"([^"\\\x00-\x1f\x7f] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CeEfF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2})))",
     {}},
    {"string", R"("\"" char* "\"")", {"char"}},
    {"whole", R"("0" | [1-9] [0-9]{0,15})", {}},
    {"integer", R"("-"? whole)", {"whole"}},
    {"number", R"("-"? whole ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?)", {"whole"}},
    {"boolean", R"("true" | "false")", {}},
    {"null", R"("null")", {}},
    {"array", R"("[" ws (value (ws "," ws value)*)? ws "]")", {"ws", "value"}},
    {"member", R"(string ":" ws value)", {"string", "ws", "value"}},
    {"object", R"("{" ws (member (ws "," ws member)*)? ws "}")", {"ws", "member"}},
    {"value",
     "object | array | string | number | boolean | null",
     {"object", "array", "string", "number", "boolean", "null"}},
};

// Keywords that do not restrict which texts are valid.
constexpr std::string_view kAnnotations[] = {
    "title",    "description", "default", "examples",    "$schema",    "$id",          "$comment",
    "readOnly", "writeOnly",   "$defs",   "definitions", "deprecated", "discriminator"};

constexpr std::string_view kDate =
    R"(\d{4}-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31))";
constexpr std::string_view kTime =
    R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";
constexpr std::string_view kUuid =
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";

}  // namespace

class JsonGrammar::Writer {
 public:
  // Returns an expression for the schema and writes the rules that it needs.
  std::string add(JsonNode root) {
    root_ = root;
    references_.clear();
    std::string result = expression(root);
    while (!todo_.empty()) {  // a loop, because references may form a long chain
      const auto [name, schema] = todo_.front();
      todo_.pop_front();
      add_rule(name, expression(schema));
    }
    return result;
  }

  std::string add_object(JsonNode root) {
    const std::string texts = add(root);
    if (texts == "value") return use("object");
    check_objects(root);
    return texts;
  }

  std::string rules() const {
    std::string text;
    for (const CommonRule& rule : kCommon) {
      if (common_.contains(rule.name)) text += fmt::format("{} ::= {}\n", rule.name, rule.body);
    }
    return text + rules_;
  }

 private:
  std::string use(std::string_view name) {
    if (common_.insert(name).second) {
      const auto* rule = std::ranges::find(kCommon, name, &CommonRule::name);
      for (const std::string_view used : rule->uses) use(used);
    }
    return std::string(name);
  }

  std::string expression(JsonNode schema) {
    if (schema.is_boolean() && schema.boolean()) return use("value");
    if (!schema.is_object()) schema.refuse("a schema (an object or true)");
    if (schema.find("$ref")) return reference(schema);
    if (const auto value = schema.member("const")) return constant(schema, *value);
    if (schema.find("enum")) return one_of_values(schema);
    for (const char* key : {"anyOf", "oneOf", "allOf"}) {
      if (schema.find(key)) return one_of_schemas(schema, key);
    }
    const std::optional<JsonNode> type = schema.find("type");
    if (!type) return untyped(schema);
    if (type->is_string()) return typed(schema, *type);
    if (!type->is_array() || type->size() == 0) type->refuse("a type, or an array of types");
    std::vector<std::string> ways;
    for (const JsonNode one : type->elements()) ways.push_back(typed(schema, one, true));
    return gbnf_choice(ways);
  }

  // Without "type", the other keywords determine it. Without such keywords, every value is valid.
  std::string untyped(JsonNode schema) {
    if (has_object_keywords(schema)) return object(schema, false);
    for (const char* key : {"items", "prefixItems", "minItems", "maxItems"}) {
      if (schema.find(key)) return array(schema, false);
    }
    for (const char* key : {"minLength", "maxLength", "pattern", "format"}) {
      if (schema.find(key)) return string(schema, false);
    }
    check_keys(schema, {});
    return use("value");
  }

  // among: the schema lists several types, so it may have keywords of the other types.
  std::string typed(JsonNode schema, JsonNode type, bool among = false) {
    const std::string_view name = type.is_string() ? type.string() : "";
    if (name == "object") return object(schema, among);
    if (name == "array") return array(schema, among);
    if (name == "string") return string(schema, among);
    if (name == "integer" || name == "number") return number(schema, among, name == "integer");
    for (const char* plain : {"boolean", "null"}) {
      if (name != plain) continue;
      if (!among) check_keys(schema, {"type"});
      return use(plain);
    }
    type.refuse("object, array, string, integer, number, boolean or null");
  }

  // Every keyword must be one of `known`, or an annotation.
  void check_keys(JsonNode schema, std::initializer_list<std::string_view> known) {
    for (const JsonNode member : schema.members()) {
      const std::string_view key = member.key();
      if (std::ranges::count(known, key) != 0 || std::ranges::count(kAnnotations, key) != 0)
        continue;
      not_supported(member);
    }
  }
  void check_keys(JsonNode schema, std::initializer_list<std::string_view> known, bool among) {
    if (!among) return check_keys(schema, known);
    check_keys(schema,
               {"type", "properties", "required", "additionalProperties", "items", "prefixItems",
                "minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "minimum",
                "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
  }
  [[noreturn]] static void not_supported(JsonNode member) {
    throw Error("{}: not supported in a schema", member.where());
  }

  std::string new_name(std::string_view kind) { return fmt::format("{}-{}", kind, ++n_names_); }

  void add_rule(std::string_view name, const std::string& body) {
    rules_ += fmt::format("{} ::= {}\n", name, body);
    if (rules_.size() > Grammar::kMaxBytes) {
      throw Error("{}: expected a schema whose grammar has at most {} bytes, found more",
                  root_->where(), Grammar::kMaxBytes);
    }
  }

  std::string reference(JsonNode schema) {
    check_keys(schema, {"$ref"});
    const JsonNode ref = schema.at("$ref");
    const std::string pointer(ref.string());
    const auto known = references_.find(pointer);
    if (known != references_.end()) return known->second;
    const JsonNode target = json_at(*root_, ref);
    const std::string name = references_[pointer] = new_name("ref");
    todo_.emplace_back(name, target);
    return name;
  }

  std::string constant(JsonNode schema, JsonNode value) {
    check_keys(schema, {"const", "type"});
    return value_of(schema, value);
  }

  std::string one_of_values(JsonNode schema) {
    check_keys(schema, {"enum", "type"});
    const JsonNode values = schema.at("enum");
    if (!values.is_array() || values.size() == 0) values.refuse("an array of values");
    std::vector<std::string> ways;
    for (const JsonNode value : values.elements()) ways.push_back(value_of(schema, value));
    return gbnf_choice(ways);
  }

  static bool has_type(JsonNode value, std::string_view type) {
    return (type == "string" && value.is_string()) || (type == "object" && value.is_object()) ||
           (type == "array" && value.is_array()) || (type == "null" && value.is_null()) ||
           (type == "boolean" && value.is_boolean()) || (type == "number" && value.is_number()) ||
           (type == "integer" && (value.is_integer() || value.is_whole()));
  }

  std::string value_of(JsonNode schema, JsonNode value) {
    if (const auto type = schema.find("type")) {
      bool fits = type->is_string() && has_type(value, type->string());
      if (type->is_array()) {
        for (const JsonNode one : type->elements()) {
          fits = fits || (one.is_string() && has_type(value, one.string()));
        }
      }
      if (!fits) value.refuse("a value of the schema's 'type'");
    }
    return gbnf_literal(json_text(value));
  }

  std::string one_of_schemas(JsonNode schema, const char* key) {
    check_keys(schema, {key});
    const JsonNode schemas = schema.at(key);
    const bool all = key == std::string_view("allOf");
    if (!schemas.is_array() || schemas.size() == 0) schemas.refuse("an array of schemas");
    if (all && schemas.size() != 1)
      schemas.refuse("one schema (allOf with several schemas is not supported)");
    std::vector<std::string> ways;
    for (const JsonNode one : schemas.elements()) ways.push_back(expression(one));
    return gbnf_choice(ways);
  }

  std::string string(JsonNode schema, bool among) {
    check_keys(schema, {"type", "minLength", "maxLength", "pattern", "format"}, among);
    const auto min = count(schema, "minLength"), max = count(schema, "maxLength");
    check_order(schema, "maxLength", min.value_or(0), max);
    const auto pattern = schema.find("pattern"), format = schema.find("format");
    if (pattern || format) {
      if (pattern && format) not_supported(*format);
      for (const char* key : {"minLength", "maxLength"}) {
        if (const auto length = schema.find(key)) {
          length->refuse("none together with 'pattern' or 'format'");
        }
      }
      use("char");
      return R"("\"" )" + (pattern ? of_pattern(*pattern) : of_format(*format)) + R"( "\"")";
    }
    if (!min && !max) return use("string");
    use("char");
    return fmt::format(R"("\"" char{} "\"")", repetition(min.value_or(0), max));
  }

  static std::string of_pattern(JsonNode pattern) {
    if (!pattern.is_string()) pattern.refuse("a regular expression");
    try {
      return json_pattern_gbnf(pattern.string());
    } catch (const Error& problem) {
      throw Error("{}: {}", pattern.where(), problem.what());
    }
  }

  static std::string of_format(JsonNode format) {
    const std::string_view name = format.is_string() ? format.string() : "";
    std::string pattern;
    if (name == "date") pattern = kDate;
    if (name == "time") pattern = kTime;
    if (name == "date-time") pattern = fmt::format("{}T{}", kDate, kTime);
    if (name == "uuid") pattern = kUuid;
    if (pattern.empty()) format.refuse("date, time, date-time or uuid");
    return json_pattern_gbnf("^" + pattern + "$");
  }

  static std::optional<std::size_t> count(JsonNode schema, const char* key) {
    const auto value = schema.find(key);
    if (!value) return std::nullopt;
    if (!value->is_integer() || value->integer() < 0 ||
        value->integer() > static_cast<std::int64_t>(Grammar::kMaxRepeats)) {
      value->refuse(fmt::format("a whole number from 0 to {}", Grammar::kMaxRepeats));
    }
    return static_cast<std::size_t>(value->integer());
  }

  static void check_order(JsonNode schema, const char* max_key, std::size_t min,
                          std::optional<std::size_t> max) {
    if (max && *max < min) schema.at(max_key).refuse(fmt::format("at least {} (the minimum)", min));
  }

  static std::string repetition(std::size_t min, std::optional<std::size_t> max) {
    return max ? fmt::format("{{{},{}}}", min, *max) : fmt::format("{{{},}}", min);
  }

  // An integer or any number.
  std::string number(JsonNode schema, bool among, bool integers) {
    check_keys(schema,
               {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
               among);
    if (const auto step = schema.find("multipleOf")) {
      if (!integers) not_supported(*step);
      if (!step->is_number() || step->number() != 1) step->refuse("1");
    }
    const auto bound = [&](const char* inclusive, const char* exclusive, bool is_low) {
      std::optional<RangeBound> result;
      const auto one = schema.find(inclusive), other = schema.find(exclusive);
      if (one) result = bound_of(*one, false, integers);
      if (!other) return result;
      const RangeBound strict = bound_of(*other, true, integers);
      const bool is_weaker = result && (is_low ? strict < *result : *result < strict);
      return is_weaker ? result : strict;
    };
    const auto low = bound("minimum", "exclusiveMinimum", true);
    const auto high = bound("maximum", "exclusiveMaximum", false);
    if (!low && !high) return use(integers ? "integer" : "number");
    std::size_t n_decimals = 0;
    if (!integers) {
      n_decimals =
          kExactDigits - std::max(low ? low->whole.size() : 0, high ? high->whole.size() : 0);
    }
    if (auto gbnf = range_gbnf(low, high, n_decimals)) return *gbnf;
    schema.refuse(fmt::format("a range that contains a {}number", integers ? "whole " : ""));
  }

  std::string array(JsonNode schema, bool among) {
    check_keys(schema, {"type", "items", "prefixItems", "minItems", "maxItems"}, among);
    const std::size_t min = count(schema, "minItems").value_or(0);
    const std::optional<std::size_t> max = count(schema, "maxItems");
    check_order(schema, "maxItems", min, max);
    const std::string separator = fmt::format(R"( {} "," {} )", use("ws"), use("ws"));
    const auto prefix = schema.find("prefixItems");
    const auto items = schema.find("items");
    std::string first;
    std::size_t n_first = 0;
    if (prefix) {
      if (!prefix->is_array()) prefix->refuse("an array of schemas");
      for (const JsonNode one : prefix->elements()) {
        first += (n_first++ > 0 ? separator : "") + expression(one);
      }
      if (max && *max < n_first)
        schema.at("maxItems")
            .refuse(fmt::format("at least {} (the schemas in 'prefixItems')", n_first));
    }
    const bool closed = (items && items->is_boolean() && !items->boolean()) || (prefix && !items);
    if (closed || (max && *max == n_first)) {
      if (min > n_first)
        schema.at("minItems")
            .refuse(fmt::format("at most {} (no more items are possible)", n_first));
      return fmt::format(R"("[" ws {} ws "]")", first);
    }
    const std::string item = items ? expression(*items) : use("value");
    std::string body;
    if (n_first > 0) {
      const auto left = max ? std::optional(*max - n_first) : std::nullopt;
      const std::size_t needed = min > n_first ? min - n_first : 0;
      body = fmt::format("{} ({}{}){}", first, separator, item, repetition(needed, left));
    } else {
      const auto left = max ? std::optional(*max - 1) : std::nullopt;
      const std::size_t needed = min > 0 ? min - 1 : 0;
      body = fmt::format("({} ({}{}){}){}", item, separator, item, repetition(needed, left),
                         min == 0 ? "?" : "");
    }
    const std::string name = new_name("array");
    add_rule(name, fmt::format(R"("[" ws {} ws "]")", body));
    return name;
  }

  struct Member {
    std::string rule;  // "\"age\":" ws integer
    bool required = false;
  };

  std::string object(JsonNode schema, bool among) {
    check_keys(schema, {"type", "properties", "required", "additionalProperties"}, among);
    std::set<std::string, std::less<>> names;
    std::vector<Member> members;
    const std::set<std::string, std::less<>> required = required_names(schema);
    if (const auto properties = schema.find("properties")) {
      if (!properties->is_object()) properties->refuse("an object of schemas");
      for (const JsonNode property : properties->members()) {
        const std::string key(property.key());
        names.insert(key);
        members.push_back(
            {member(gbnf_literal(json_quoted(key)), expression(property)), required.contains(key)});
      }
    }
    for (const std::string& name : required) {
      if (!names.contains(name)) schema.at("required").refuse("names from 'properties'");
    }
    const auto others = schema.find("additionalProperties");
    const bool open = others ? !others->is_boolean() || others->boolean() : members.empty();
    std::string extra;
    if (open) {
      extra = member(key_outside(schema, names), others ? expression(*others) : use("value"));
    }
    return members_of_object(members, extra);
  }

  static std::set<std::string, std::less<>> required_names(JsonNode schema) {
    std::set<std::string, std::less<>> names;
    const auto required = schema.find("required");
    if (!required) return names;
    if (!required->is_array()) required->refuse("an array of names");
    for (const JsonNode name : required->elements()) names.emplace(name.string());
    return names;
  }

  std::string member(const std::string& key, const std::string& value) {
    const std::string name = new_name("member");
    add_rule(name, fmt::format(R"({} ":" {} {})", key, use("ws"), value));
    return name;
  }

  // The members in order; optional ones may be missing; then any number of `extra` ("" for none).
  // The loop runs from the last member to the first. `after`: what can follow once a member was
  // written. `alone`: what can follow "{".
  std::string members_of_object(const std::vector<Member>& members, const std::string& extra) {
    const std::string separator = fmt::format(R"({} "," {} )", use("ws"), use("ws"));
    std::string after = "\"\"", alone = "\"\"";
    if (!extra.empty()) {
      after = fmt::format("({}{})*", separator, extra);
      alone = fmt::format("({} {})?", extra, after);
    }
    for (std::size_t i = members.size(); i-- > 0;) {
      const auto& [rule, required] = members[i];
      const std::string rest = named(after);
      alone = required ? fmt::format("{} {}", rule, rest)
                       : fmt::format("({} {} | {})", rule, rest, named(alone));
      after = fmt::format("({}{}){} {}", separator, rule, required ? "" : "?", rest);
    }
    const std::string name = new_name("object");
    add_rule(name, fmt::format(R"("{{" ws {} ws "}}")", alone));
    return name;
  }

  std::string named(const std::string& body) {
    if (body == "\"\"") return body;
    const std::string name = new_name("members");
    add_rule(name, body);
    return name;
  }

  // Any key except `names`.
  std::string key_outside(JsonNode schema, const std::set<std::string, std::less<>>& names) {
    const auto rules = other_keys_gbnf(schema, names, [&] { return new_name("key"); });
    for (const auto& [name, body] : rules) add_rule(name, body);
    return fmt::format(R"("\"" {} "\"")", rules.front().name);
  }

  std::optional<JsonNode> root_;  // of the schema being added
  std::string rules_;
  std::set<std::string_view> common_;
  std::map<std::string, std::string> references_;  // pointer to rule name
  std::deque<std::pair<std::string, JsonNode>> todo_;
  std::size_t n_names_ = 0;
};

JsonGrammar::JsonGrammar() : writer_(std::make_unique<Writer>()) {}
JsonGrammar::~JsonGrammar() = default;
std::string JsonGrammar::add(JsonNode schema) { return writer_->add(schema); }
std::string JsonGrammar::add_object(JsonNode schema) { return writer_->add_object(schema); }
std::string JsonGrammar::rules() const { return writer_->rules(); }

std::string json_schema_gbnf(JsonNode schema) {
  JsonGrammar grammar;
  const std::string root = grammar.add(schema);
  return fmt::format("root ::= {}\n{}", root, grammar.rules());
}

}  // namespace stagecraft
