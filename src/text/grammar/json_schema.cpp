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
#include "text/grammar/json_format.h"
#include "text/grammar/json_keywords.h"
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
  constexpr double k2To63 = 9223372036854775808.0;
  bool is_whole = value.is_integer() || value.is_whole();
  std::string text = is_whole ? json_text(value) : "";
  if (!is_whole && value.is_number()) {
    const double number = value.number();
    is_whole = std::abs(number) < k2To63 && number == std::trunc(number);  // 1e15
    text = is_whole ? fmt::format("{}", static_cast<std::int64_t>(number)) : decimal_text(number);
  }
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

// With BeyondGrammar::Ignore, more repetitions are not counted: each costs a rule.
constexpr std::size_t kMostIgnorableRepeats = 1000;

// The kind of the keywords that restrict values of a type.
KeywordKind kind_of_type(std::string_view type) {
  if (type == "object") return KeywordKind::Object;
  if (type == "array") return KeywordKind::Array;
  if (type == "string") return KeywordKind::String;
  return type == "integer" || type == "number" ? KeywordKind::Number : KeywordKind::Unknown;
}

// Whether no value fits this schema because it is `false`.
bool is_false(JsonNode schema) { return schema.is_boolean() && !schema.boolean(); }

// Whether `is` holds for one of the names in "type", which is a name or an array of names.
template <class Is>
bool any_type(JsonNode type, Is is) {
  if (type.is_string()) return is(type.string());
  if (!type.is_array()) return false;
  for (const JsonNode one : type.elements()) {
    if (one.is_string() && is(one.string())) return true;
  }
  return false;
}

}  // namespace

class JsonGrammar::Writer {
 public:
  // Returns an expression for the schema and writes the rules that it needs.
  std::string add(JsonNode root, BeyondGrammar beyond) {
    begin(root, beyond);
    return end(expression(root));
  }

  std::string add_object(JsonNode root, BeyondGrammar beyond) {
    begin(root, beyond);
    const bool refuses = beyond == BeyondGrammar::Refuse;
    const std::string_view key = root.is_object() ? deciding_keyword(root) : "";
    const auto type = key == "type" ? root.find("type") : std::nullopt;
    const auto is_object = [](std::string_view name) { return name == "object"; };
    if (!refuses && type && type->is_array() && any_type(*type, is_object)) {
      others_allowed_ = check_keywords(root, "type");
      return end(object(root));
    }
    const std::string texts = end(expression(root));
    if (texts == "value") return use("object");
    try {
      check_objects(root);
    } catch (const Error&) {
      if (refuses || key == "type" || key == "const" || key == "enum") throw;
      return use("object");
    }
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

  void begin(JsonNode root, BeyondGrammar beyond) {
    if (is_false(root)) root.refuse("a schema (an object or true)");
    root_ = root;
    ignores_ = beyond == BeyondGrammar::Ignore;
    others_allowed_ = false;
    references_.clear();
    arrays_.clear();
    uses_.clear();
    user_ = "";
  }

  std::string end(std::string result) {
    while (!todo_.empty()) {  // a loop, because references may form a long chain
      const Reference reference = todo_.front();
      todo_.pop_front();
      user_ = reference.name;
      others_allowed_ = reference.others_allowed;
      add_rule(reference.name, expression(reference.target));
    }
    refuse_circles();
    return result;
  }

  std::string expression(JsonNode schema) {
    if (schema.is_boolean() && (schema.boolean() || ignores_)) return use("value");
    if (!schema.is_object()) schema.refuse("a schema (an object or true)");
    const std::string_view key = deciding_keyword(schema);
    const bool was_open = others_allowed_;
    others_allowed_ = check_keywords(schema, key) || was_open;
    std::string result = decided(schema, key);
    others_allowed_ = was_open;
    return result;
  }

  std::string decided(JsonNode schema, std::string_view key) {
    if (key.empty()) return untyped(schema);
    if (key == "const") return one_value(schema, *schema.member("const"));
    if (key == "enum") return one_of_values(schema);
    if (key == "$ref") return reference(schema.at("$ref"));
    if (key != "type") return one_of_schemas(schema, key);
    const JsonNode type = schema.at("type");
    if (type.is_string()) return typed(schema, type);
    if (!type.is_array() || type.size() == 0) type.refuse("a type, or an array of types");
    std::vector<std::string> ways;
    std::set<std::string_view> names;
    for (const JsonNode one : type.elements()) {
      if (one.is_string() && !names.insert(one.string()).second) one.refuse("each type once");
      ways.push_back(typed(schema, one));
    }
    return gbnf_choice(ways);
  }

  // The expression of a schema for a part of the value.
  std::string inner(JsonNode schema) {
    ++depth_;
    std::string result = expression(schema);
    --depth_;
    return result;
  }

  // Without "type", the other keywords determine it. Without such keywords, every value is valid.
  std::string untyped(JsonNode schema) {
    if (has_keywords_of(schema, KeywordKind::Object)) return object(schema);
    if (has_keywords_of(schema, KeywordKind::Array)) return array(schema);
    for (const char* key : {"minLength", "maxLength", "pattern"}) {
      if (schema.find(key)) return string(schema);
    }
    if (const auto format = schema.find("format"); format && !of_format(*format).empty()) {
      return string(schema);
    }
    if (has_keywords_of(schema, KeywordKind::Number)) return number(schema, false);
    return use("value");
  }

  std::string typed(JsonNode schema, JsonNode type) {
    const std::string_view name = type.is_string() ? type.string() : "";
    if (name == "object") return object(schema);
    if (name == "array") return array(schema);
    if (name == "string") return string(schema);
    if (name == "integer" || name == "number") return number(schema, name == "integer");
    if (name == "boolean" || name == "null") return use(name);
    type.refuse("object, array, string, integer, number, boolean or null");
  }

  // Refuses or ignores each keyword that the expression for the deciding one cannot contain.
  // Returns whether it has ignored one that may say something about the members of objects.
  bool check_keywords(JsonNode schema, std::string_view deciding) {
    const bool by_type = deciding.empty() || deciding == "type";
    const bool by_value = deciding == "const" || deciding == "enum";
    bool ignored = false;
    for (const JsonNode member : schema.members()) {
      const std::string_view key = member.key();
      const auto [kind, in_grammars] = json_keyword(key);
      if (kind == KeywordKind::Annotation || key == deciding || allows_everything(member)) continue;
      if (by_value && key == "type") continue;  // the values are compared with it
      // The expression for a type contains its keywords. Those of other types do not matter.
      if (by_type && restricts_one_type(kind) && (in_grammars || !allows_type(schema, kind))) {
        continue;
      }
      if (!in_grammars) {
        not_supported(member);
      } else if (by_type || by_value || kind == KeywordKind::Combination) {
        not_supported(member, deciding);
      } else {
        not_supported(schema.at(deciding), key);
      }
      ignored = ignored || kind != KeywordKind::Unknown;
    }
    return ignored;
  }

  static bool allows_type(JsonNode schema, KeywordKind kind) {
    const auto type = schema.find("type");
    return !type ||
           any_type(*type, [&](std::string_view name) { return kind_of_type(name) == kind; });
  }

  // Refuses the keyword, or returns so that it is ignored.
  void not_supported(JsonNode keyword, std::string_view beside = "") const {
    if (ignores_) return;
    if (beside.empty()) throw Error("{}: not supported in a schema", keyword.where());
    throw Error("{}: not supported together with '{}'", keyword.where(), beside);
  }

  std::string new_name(std::string_view kind) { return fmt::format("{}-{}", kind, ++n_names_); }

  void add_rule(std::string_view name, const std::string& body) {
    rules_ += fmt::format("{} ::= {}\n", name, body);
    check_size(rules_.size());
  }

  // The expression of a part that contains no other: all of these will be in the grammar. They are
  // counted at once, because a short schema may have long ones, such as a pattern's.
  std::string leaf(std::string text) {
    n_leaf_bytes_ += text.size();
    check_size(n_leaf_bytes_);
    return text;
  }

  void check_size(std::size_t n_bytes) const {
    if (n_bytes <= Grammar::kMaxBytes) return;
    throw GrammarError(
        root_->where(),
        fmt::format("expected a schema whose grammar has at most {} bytes, found more",
                    Grammar::kMaxBytes));
  }

  struct Reference {
    std::string name;  // of the rule
    JsonNode target, ref;
    bool others_allowed = false;  // see others_allowed_
  };

  std::string reference(JsonNode ref) {
    const std::string pointer(ref.string());
    if (ignores_ && pointer != "#" && !pointer.starts_with("#/")) return use("value");
    const auto known = references_.find({pointer, others_allowed_});
    std::string name;
    if (known != references_.end()) {
      name = known->second;
    } else {
      const JsonNode target = json_at(*root_, ref, arrays_);
      name = references_[{pointer, others_allowed_}] = new_name("ref");
      todo_.push_back({name, target, ref, others_allowed_});
      refs_.emplace(name, ref);
    }
    if (depth_ == 0) uses_.emplace(user_, name);
    return name;
  }

  // Refuses a $ref that leads back to itself, without an object or array in between: such a schema
  // says nothing, and its rule would begin with itself.
  void refuse_circles() {
    std::map<std::string, std::size_t> n_uses;  // of other rules that are not yet known to end
    std::multimap<std::string, std::string> users;
    for (const auto& [user, used] : uses_) {
      ++n_uses[user];
      n_uses.try_emplace(used, 0);
      users.emplace(used, user);
    }
    std::vector<std::string> ending;
    for (const auto& [name, n] : n_uses) {
      if (n == 0) ending.push_back(name);
    }
    while (!ending.empty()) {
      const std::string name = ending.back();
      ending.pop_back();
      n_uses.erase(name);
      const auto [first, last] = users.equal_range(name);
      for (auto it = first; it != last; ++it) {
        if (--n_uses[it->second] == 0) ending.push_back(it->second);
      }
    }
    if (n_uses.empty()) return;
    std::string name = n_uses.begin()->first;
    std::set<std::string> visited;  // from any of them into a circle
    while (visited.insert(name).second) {
      auto use = uses_.lower_bound({name, ""});
      while (!n_uses.contains(use->second)) ++use;
      name = use->second;
    }
    refs_.at(name).refuse("a schema that does not consist of itself");
  }

  std::string one_of_values(JsonNode schema) {
    const JsonNode values = schema.at("enum");
    if (!values.is_array() || values.size() == 0) values.refuse("an array of values");
    std::vector<std::string> ways;
    bool any_fits = false;
    for (const JsonNode value : values.elements()) {
      const bool fits = has_type_of(schema, value);
      if (!fits && !ignores_) value.refuse(kOfType);
      any_fits = any_fits || fits;
      ways.push_back(text_of(value));
    }
    if (!any_fits) values.refuse(kOfType);
    return gbnf_choice(ways);
  }

  static bool has_type(JsonNode value, std::string_view type) {
    return (type == "string" && value.is_string()) || (type == "object" && value.is_object()) ||
           (type == "array" && value.is_array()) || (type == "null" && value.is_null()) ||
           (type == "boolean" && value.is_boolean()) || (type == "number" && value.is_number()) ||
           (type == "integer" && (value.is_integer() || value.is_whole()));
  }

  static constexpr const char* kOfType = "a value of the schema's 'type'";

  static bool has_type_of(JsonNode schema, JsonNode value) {
    const auto type = schema.find("type");
    const auto fits = [&](std::string_view name) { return has_type(value, name); };
    return !type || any_type(*type, fits);
  }

  std::string one_value(JsonNode schema, JsonNode value) {
    if (!has_type_of(schema, value)) value.refuse(kOfType);
    return text_of(value);
  }

  std::string text_of(JsonNode value) { return leaf(gbnf_literal(json_text(value))); }

  std::string one_of_schemas(JsonNode schema, std::string_view key) {
    const JsonNode schemas = schema.at(key);
    if (!schemas.is_array() || schemas.size() == 0) schemas.refuse("an array of schemas");
    std::vector<std::string> ways;
    if (key == "allOf") {
      if (schemas.size() != 1) {
        if (!ignores_) {
          schemas.refuse("one schema (allOf with several schemas is not supported)");
        }
        others_allowed_ = true;
      }
      ways.push_back(expression(main_part(schemas)));
    } else {
      for (const JsonNode one : schemas.elements()) ways.push_back(expression(one));
    }
    return gbnf_choice(ways);
  }

  std::string string(JsonNode schema) {
    auto min = count(schema, "minLength"), max = count(schema, "maxLength");
    check_order(schema, "maxLength", min.value_or(0), max);
    const auto pattern = schema.find("pattern"), format = schema.find("format");
    std::string text = pattern ? of_pattern(*pattern) : "";
    const std::string by = text.empty() ? "format" : "pattern";
    if (const std::string other = format ? of_format(*format) : ""; text.empty()) {
      text = other;
    } else if (!other.empty()) {
      not_supported(*format, by);
    }
    if (!text.empty()) {
      if (min.value_or(0) > 0) not_supported(schema.at("minLength"), by);
      if (max) not_supported(schema.at("maxLength"), by);
      use("char");
      return leaf(R"("\"" )" + text + R"( "\"")");
    }
    if (!min && !max) return use("string");
    use("char");
    return fmt::format(R"("\"" char{} "\"")", repetition(min.value_or(0), max));
  }

  // "" if the pattern is ignored.
  std::string of_pattern(JsonNode pattern) const {
    if (!pattern.is_string()) pattern.refuse("a regular expression");
    try {
      return json_pattern_gbnf(pattern.string());
    } catch (const Error& problem) {
      if (!ignores_) throw Error("{}: {}", pattern.where(), problem.what());
      return "";
    }
  }

  // "" if the format is not known: then it is an annotation.
  static std::string of_format(JsonNode format) {
    if (!format.is_string()) format.refuse("a name");
    const std::string pattern = json_format_pattern(format.string());
    return pattern.empty() ? "" : json_pattern_gbnf("^(" + pattern + ")$");
  }

  // nullopt if there is no such keyword, or if it is ignored.
  std::optional<std::size_t> count(JsonNode schema, const char* key) const {
    const auto value = schema.find(key);
    if (!value) return std::nullopt;
    const double number = value->is_number() ? value->number() : -1;
    const auto most = ignores_ ? kMostIgnorableRepeats : Grammar::kMaxRepeats;
    if (number >= 0 && number == std::floor(number)) {
      if (number <= static_cast<double>(most)) return static_cast<std::size_t>(number);
      if (ignores_) return std::nullopt;
    }
    value->refuse(fmt::format("a whole number from 0 to {}", Grammar::kMaxRepeats));
  }

  static void check_order(JsonNode schema, const char* max_key, std::size_t min,
                          std::optional<std::size_t> max) {
    if (max && *max < min) schema.at(max_key).refuse(fmt::format("at least {} (the minimum)", min));
  }

  static std::string repetition(std::size_t min, std::optional<std::size_t> max) {
    return max ? fmt::format("{{{},{}}}", min, *max) : fmt::format("{{{},}}", min);
  }

  // nullopt if there is no such keyword, or if it is ignored.
  std::optional<RangeBound> bound(JsonNode schema, const char* key, bool exclusive,
                                  bool integers) const {
    const auto value = schema.find(key);
    if (!value || (exclusive && value->is_boolean())) return std::nullopt;
    try {
      return bound_of(*value, exclusive, integers);
    } catch (const Error&) {
      if (!ignores_ || !value->is_number()) throw;
      return std::nullopt;
    }
  }

  // The stricter one of two bounds. In draft 4, exclusiveMinimum was true or false.
  std::optional<RangeBound> bound(JsonNode schema, const char* inclusive, const char* exclusive,
                                  bool is_low, bool integers) const {
    const auto flag = schema.find(exclusive);
    const bool excludes = flag && flag->is_boolean() && flag->boolean();
    const auto one = bound(schema, inclusive, excludes, integers);
    const auto other = bound(schema, exclusive, true, integers);
    if (!one || !other) return one ? one : other;
    return (is_low ? *other < *one : *one < *other) ? one : other;
  }

  // The most decimals of the multiples of 1, 0.1, 0.01 ...; nullopt if any number is allowed.
  std::optional<std::size_t> decimals(JsonNode schema) const {
    const auto step = schema.find("multipleOf");
    if (!step) return std::nullopt;
    if (!step->is_number() || !(step->number() > 0)) step->refuse("a number above 0");
    std::string text = decimal_text(step->number());
    const std::size_t n = text.empty() || text.size() == 1 ? 0 : text.size() - 2;
    if (text == "1" || (text.starts_with("0.") && text.find_first_not_of("0.") == n + 1)) {
      if (text.ends_with('1')) return n;
    }
    if (!ignores_) step->refuse("1, 0.1, 0.01 ...");
    return std::nullopt;
  }

  // An integer or any number.
  std::string number(JsonNode schema, bool integers) {
    const auto low = bound(schema, "minimum", "exclusiveMinimum", true, integers);
    const auto high = bound(schema, "maximum", "exclusiveMaximum", false, integers);
    const auto decimals_of_step = decimals(schema);
    if (decimals_of_step == 0) integers = true;
    if (!low && !high) {
      if (integers) return use("integer");
      if (!decimals_of_step) return use("number");
      return fmt::format(R"("-"? {} ("." [0-9]{{1,{}}})?)", use("whole"), *decimals_of_step);
    }
    std::size_t n_decimals = 0;
    if (!integers) {
      n_decimals =
          kExactDigits - std::max(low ? low->whole.size() : 0, high ? high->whole.size() : 0);
      if (decimals_of_step) n_decimals = std::min(n_decimals, *decimals_of_step);
    }
    if (auto gbnf = range_gbnf(low, high, n_decimals)) return leaf(*gbnf);
    schema.refuse(fmt::format("a range that contains a {}number", integers ? "whole " : ""));
  }

  std::string array(JsonNode schema) {
    const std::size_t min = count(schema, "minItems").value_or(0);
    const std::optional<std::size_t> max = count(schema, "maxItems");
    check_order(schema, "maxItems", min, max);
    const std::string separator = fmt::format(R"( {} "," {} )", use("ws"), use("ws"));
    auto prefix = schema.find("prefixItems");
    auto items = schema.find("items");
    if (!prefix && items && items->is_array()) {  // before 2020
      prefix = items;
      items = schema.find("additionalItems");
    }
    if (prefix && others_allowed_) prefix = items = std::nullopt;
    std::string first;
    std::size_t n_first = 0;
    if (prefix) {
      if (!prefix->is_array()) prefix->refuse("an array of schemas");
      for (const JsonNode one : prefix->elements()) {
        if (max && n_first == *max) break;
        first += (n_first++ > 0 ? separator : "") + inner(one);
      }
    }
    // Without "items", items of any kind may follow. They do so only if "minItems" needs them.
    const bool closed = (items && is_false(*items)) || (prefix && !items && min <= n_first);
    if (closed || (max && *max == n_first)) {
      if (min > n_first)
        schema.at("minItems")
            .refuse(fmt::format("at most {} (no more items are possible)", n_first));
      return fmt::format(R"("[" ws {} ws "]")", first);
    }
    const std::string item = items ? inner(*items) : use("value");
    std::string body;
    if (n_first > 0) {
      const auto most = prefix && !items ? std::optional(min) : max;
      const auto left = most ? std::optional(*most - n_first) : std::nullopt;
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
    std::string rule;  // the name of one such as member-1 ::= "\"age\"" ":" ws integer
    bool required = false;
  };

  std::string object(JsonNode schema) {
    std::set<std::string, std::less<>> names;
    std::vector<Member> members;
    const std::set<std::string, std::less<>> required = required_names(schema);
    if (const auto properties = schema.find("properties")) {
      if (!properties->is_object()) properties->refuse("an object of schemas");
      for (const JsonNode property : properties->members()) {
        const std::string key(property.key());
        names.insert(key);
        if (is_false(property)) {  // no object has this member
          if (required.contains(key)) property.refuse("a schema that some value fits");
          continue;
        }
        members.push_back(
            {member(gbnf_literal(json_quoted(key)), inner(property)), required.contains(key)});
      }
    }
    const bool by_pattern = schema.find("patternProperties").has_value();  // is ignored
    const auto others = by_pattern ? std::nullopt : schema.find("additionalProperties");
    const bool closed = others && is_false(*others);
    const bool open = !closed && (others || by_pattern || others_allowed_ || members.empty());
    std::string extra = others && !closed ? inner(*others) : use("value");
    for (const std::string& name : required) {
      if (names.contains(name)) continue;
      if (closed) schema.at("required").refuse("names from 'properties'");
      names.insert(name);
      members.push_back({member(gbnf_literal(json_quoted(name)), extra), true});
    }
    if (open) extra = member(key_outside(schema, names), extra);
    return members_of_object(members, open ? extra : "");
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

  // Any key except `names`. If the names are too long for that, any key.
  std::string key_outside(JsonNode schema, const std::set<std::string, std::less<>>& names) {
    std::size_t size = 0;
    for (const std::string& name : names) size += name.size();
    if (ignores_ && size >= Grammar::kMaxRepeats) return use("string");
    const auto rules = other_keys_gbnf(schema, names, [&] { return new_name("key"); });
    for (const auto& [name, body] : rules) add_rule(name, body);
    return fmt::format(R"("\"" {} "\"")", rules.front().name);
  }

  std::optional<JsonNode> root_;  // of the schema being added
  bool ignores_ = false;          // keywords that a grammar cannot express
  // Objects may have members that the schema does not name: a keyword for them was ignored.
  bool others_allowed_ = false;
  std::string rules_;
  std::set<std::string_view> common_;
  // Rule names. Keys: pointer, others_allowed_.
  std::map<std::pair<std::string, bool>, std::string> references_;
  ArrayElements arrays_;
  std::map<std::string, JsonNode> refs_;  // rule name: its first $ref
  std::deque<Reference> todo_;
  std::string user_;       // the rule that is being written; "" for the root
  std::size_t depth_ = 0;  // objects and arrays around the schema that is being written
  std::set<std::pair<std::string, std::string>> uses_;  // a rule may begin with another one
  std::size_t n_leaf_bytes_ = 0;
  std::size_t n_names_ = 0;
};

JsonGrammar::JsonGrammar() : writer_(std::make_unique<Writer>()) {}
JsonGrammar::~JsonGrammar() = default;
std::string JsonGrammar::add(JsonNode schema, BeyondGrammar beyond) {
  return writer_->add(schema, beyond);
}
std::string JsonGrammar::add_object(JsonNode schema, BeyondGrammar beyond) {
  return writer_->add_object(schema, beyond);
}
std::string JsonGrammar::rules() const { return writer_->rules(); }

std::string json_schema_problem(const Error& error) {
  if (const auto* problem = dynamic_cast<const GrammarError*>(&error)) return problem->problem();
  return fmt::format(
      "expected a schema whose grammar has at most {} symbols and {} nested groups, found more",
      Grammar::kMaxSymbols, Grammar::kMaxNesting);
}

std::string json_schema_gbnf(JsonNode schema, BeyondGrammar beyond) {
  JsonGrammar grammar;
  const std::string root = grammar.add(schema, beyond);
  return fmt::format("root ::= {}\n{}", root, grammar.rules());
}

}  // namespace stagecraft
