#include "text/grammar/json_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/support/grammar_texts.h"

namespace stagecraft {
namespace {

std::string gbnf_of(const std::string& schema) {
  const Json json(schema, "schema");
  return json_schema_gbnf(json.root());
}

struct SchemaCase {
  const char* schema;
  std::vector<std::string> valid, invalid;
};

const SchemaCase kSchemas[] = {
    {R"({"type": "boolean"})", {"true", "false"}, {"1", "null", " true"}},
    {R"({"type": ["string", "null"], "minLength": 1})", {"null", "\"a\""}, {"\"\"", "1"}},
    {R"({"type": "number"})",
     {"0", "-1.5", "12e-3", "0.25E7"},
     {"01", "1.", ".5", "+1", "1e", "NaN", "1e999"}},
    {R"({"type": "integer"})", {"0", "-7", "9007199254740991"}, {"1.0", "007", "1e3"}},
    {R"({"type": "object", "properties": {"a": false, "b": {"type": "null"}}})",
     {R"({"b":null})", "{}"},
     {R"({"b":1})", R"({"a":1})"}},
    {R"({"type": "integer", "minimum": 7, "maximum": 123})",
     {"7", "9", "10", "99", "100", "119", "123"},
     {"6", "0", "07", "124", "130", "200", "1000", "-7"}},
    {R"({"type": "integer", "minimum": -12, "exclusiveMaximum": 4})",
     {"-12", "-9", "-1", "0", "3"},
     {"-13", "-0", "4", "10", "-20"}},
    {R"({"type": "integer", "minimum": 0})", {"0", "5", "123456"}, {"-1", "01"}},
    {R"({"type": "integer", "minimum": -12, "maximum": 0})",
     {"0", "-1", "-12"},
     {"1", "-13", "-0"}},
    {R"({"type": "integer", "maximum": -5})", {"-5", "-6", "-10", "-999"}, {"-4", "0", "5", "-1"}},
    {R"({"type": "integer", "minimum": 0.5, "maximum": 3.0})", {"1", "3"}, {"0", "4", "1.0"}},
    {R"({"type": "integer", "minimum": 3, "exclusiveMinimum": 1})", {"3"}, {"2"}},
    {R"({"type": "integer", "minimum": -3, "exclusiveMinimum": 2})", {"3"}, {"2", "-3"}},
    {R"({"type": "integer", "minimum": -3, "exclusiveMinimum": -5})", {"-3"}, {"-4"}},
    {R"({"type": "number", "minimum": 0.5, "exclusiveMinimum": 0.25})", {"0.5"}, {"0.3"}},
    {R"({"type": "integer", "maximum": 3, "exclusiveMaximum": 3})", {"2"}, {"3"}},
    {R"({"type": "integer", "maximum": 3, "exclusiveMaximum": 5})", {"3"}, {"4"}},
    {R"({"type": ["integer", "null"], "minimum": 3, "multipleOf": 1})", {"3", "null"}, {"2"}},
    {R"({"type": "number", "minimum": 0, "maximum": 1})",
     {"0", "0.0", "0.25", "1", "1.000", "0.99999999999999"},
     {"-0", "-0.5", "1.01", "2", "00.5", ".5", "0.", "1e0"}},
    {R"({"type": "number", "exclusiveMinimum": -2.25, "maximum": -0.05})",
     {"-2.249", "-2", "-0.05", "-0.0500", "-1.999"},
     {"-2.25", "-2.250", "-0.049", "0", "-3"}},
    {R"({"type": ["number", "null"], "exclusiveMinimum": 0})", {"0.001", "12.5", "null"}, {"0.0"}},
    {R"({"type": "string"})",
     {R"("")", R"("a\n\u00e9\ud7ff")", "\"\xe2\x82\xac\""},
     {"\"", "\"a\nb\"", R"("\x")", R"("\ud800")", R"("\uDFFF")", "a"}},
    {R"({"type": "string", "minLength": 2, "maxLength": 3})",
     {R"("ab")", R"("\"\\\u0041")", "\"\xe2\x82\xac\xc3\xa9\""},
     {R"("a")", R"("abcd")", "\"\xe2\x82\xac\""}},
    {R"({"type": "string", "pattern": "^[a-c]{2,3}-\\d+(x|yz)?$"})",
     {R"("ab-1")", R"("abc-123x")", R"("cc-0yz")"},
     {R"("a-1")", R"("ab-")", R"("ab-1y")", R"("xab-1")", R"("ab-1 ")"}},
    {R"({"type": "string", "pattern": "^\\S[^\\s]$"})",
     {R"("ab")", "\"\xc3\xa9\xe2\x82\xac\""},
     {R"("a b")", R"("a ")", "\"a\xc2\xa0\"", "\"\xe2\x80\xa8z\"", "\"a\xe3\x80\x80\""}},
    {R"({"type": "string", "pattern": "b+"})", {R"("b")", R"("abba")"}, {R"("")", R"("aa")"}},
    {R"({"type": "string", "pattern": "^\"[^a]\\\\.\\n$"})",
     {R"("\"b\\c\n")", R"("\"\"\\\"\n")"},
     {R"("\"a\\c\n")", R"(""b\\c\n")"}},
    {R"({"type": "string", "pattern": "^\\S[^\\s]\\s$"})",
     {R"("ab ")", "\"ab\xe3\x80\x80\""},
     {R"("abc")", "\"\xe3\x80\x80- \"", "\"a\xc2\xa0 \""}},
    {R"({"type": "string", "format": "date"})",
     {R"("2024-02-28")", R"("1999-12-31")", R"("2000-04-30")", R"("2024-02-29")",
      R"("2000-02-29")"},
     {R"("2023-02-29")", R"("1900-02-29")", R"("2023-02-30")", R"("2023-04-31")", R"("2023-13-01")",
      R"("2023-1-1")"}},
    {R"({"type": "string", "format": "date-time"})",
     {R"("2024-02-28T23:59:59Z")", R"("1999-12-31T00:00:00.5+02:00")"},
     {R"("2024-02-28 23:59:59Z")", R"("2024-02-28T24:00:00Z")"}},
    {R"({"type": "string", "format": "uuid"})",
     {R"("123e4567-e89b-12d3-a456-426614174000")"},
     {R"("123e4567")"}},
    {R"({"type": "string", "format": "email"})",
     {R"("ann.b_c+d@mail.example.org")", R"("a@b-c.de")"},
     {R"("a@b")", R"("a")", R"("a..b@c.de")", R"("a b@c.de")", R"("a@-b.de")"}},
    {R"({"type": "string", "format": "hostname"})",
     {R"("localhost")", R"("a-b.example.org")"},
     {R"("-a")", R"("a-")", R"("a..b")", R"("a_b")", R"("")"}},
    {R"({"type": "string", "format": "ipv4"})",
     {R"("0.10.199.255")", R"("127.0.0.1")"},
     {R"("256.0.0.1")", R"("1.2.3")", R"("01.2.3.4")"}},
    {R"({"type": "string", "format": "ipv6"})",
     {R"("::")", R"("::1")", R"("fe80::1:2")", R"("1:2:3:4:5:6:7:8")", R"("1::")",
      R"("::ffff:10.0.0.1")", R"("1:2:3:4:5:6:7::")", R"("1:2:3:4::8")"},
     {R"("1")", R"("1:2:3:4:5:6:7")", R"("1::2::3")", R"("12345::")", R"(":::")",
      R"("1:2:3:4:5:6:7:8:9")"}},
    {R"({"type": "string", "format": "duration"})",
     {R"("P1D")", R"("PT5M")", R"("P1Y2M3DT4H5M6S")", R"("P2W")", R"("P1YT2H")"},
     {R"("P")", R"("PT")", R"("1D")", R"("P1H")", R"("P1DT")", R"("P1Y2D")", R"("PT1H2S")",
      R"("PT1.5S")"}},
    {R"({"type": "string", "format": "uri", "minLength": 2})", {R"("x:")"}, {R"("x")"}},
    {R"({"type": "integer", "format": "int32", "minLength": 5})", {"1"}, {"\"abcde\""}},
    {R"({"format": "int32"})", {"1", "\"x\""}, {"x"}},
    {R"({"type": "number", "multipleOf": 0.01})", {"-3", "2.5", "0.25"}, {"0.125", "1e2"}},
    {R"({"type": "number", "multipleOf": 0.1, "minimum": 1})", {"1", "2.5"}, {"0.9", "1.25"}},
    {R"({"type": "number", "multipleOf": 1})", {"7"}, {"7.5"}},
    {R"({"type": "integer", "minimum": 2, "exclusiveMinimum": true})", {"3"}, {"2"}},
    {R"({"type": "array", "items": [{"const": 1}], "additionalItems": {"const": 2}})",
     {"[1]", "[1,2,2]"},
     {"[2]", "[1,1]"}},
    {R"({"type": "array", "uniqueItems": false, "x-order": 1, "deprecated": true, "example": []})",
     {"[1]"},
     {"1"}},
    {R"({"type": "object", "propertyNames": {"type": "string"}, "minProperties": 0})",
     {R"({"a":1})"},
     {"1"}},
    {R"({"required": ["a"]})", {R"({"a":1})", R"({"a":[],"b":2})"}, {"{}", R"({"b":2})"}},
    {R"({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a", "b\""]})",
     {R"({"a":1,"b\"":2})"},
     {R"({"a":1})", R"({"b\"":2})", R"({"a":1,"b\"":2,"c":3})"}},
    {R"({"type": "object", "required": ["a"], "additionalProperties": {"type": "boolean"}})",
     {R"({"a":true})", R"({"a":true,"b":false})"},
     {R"({"a":1})", "{}"}},
    {R"({"minimum": 3})", {"3"}, {"2"}},
    {R"({"enum": ["red", 3, null, {"a": [1, "é\""]}]})",
     {R"("red")", "3", "null", R"({"a":[1,"é\""]})"},
     {R"("blue")", "4", "{}"}},
    {R"({"const": "a\\b"})", {R"("a\\b")"}, {R"("a\b")"}},
    {R"({"const": null})", {"null"}, {"0"}},
    {R"({"type": "object"})", {"{}", R"({"a": [1, {"b": null}]})"}, {"[]", "{a: 1}", "{\"a\"}"}},
    {R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
         "required": ["name", "age"], "additionalProperties": false})",
     {R"({"name":"x","age":3})", R"({ "name": "x", "age": 3 })",
      "{\n  \"name\": \"x\",\n  \"age\": 3\n}"},
     {R"({"name":"x"})", R"({"age":3,"name":"x"})", R"({"name":"x","age":3,"z":1})",
      R"({"name":"x","age":3,})", R"({"name":"x" "age":3})"}},
    {R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
         "required": ["b"]})",
     {R"({"b":2})", R"({"a":1,"b":2})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
     {"{}", R"({"a":1})", R"({"a":1,"c":3})", R"({"c":3,"b":2})", R"({,"b":2})", R"({"b":2,})"}},
    {R"({"type": "object", "properties": {"a": {"const": 1}, "ab": {"const": 2}},
         "additionalProperties": {"type": "boolean"}})",
     {"{}", R"({"a":1})", R"({"ab":2})", R"({"abc":true,"b":false})", R"({"a":1,"":true})"},
     {R"({"a":true})", R"({"ab":false})", R"({"a":1,"ab":true})", R"({"x":1})",
      R"({"\u0061":true})"}},
    {R"({"type": "object", "properties": {}, "additionalProperties": false})",
     {"{}", "{ }"},
     {R"({"a":1})"}},
    {R"({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3})",
     {"[true]", "[ true, false, true ]"},
     {"[]", "[true,]", "[true,true,true,true]", "[1]"}},
    {R"({"type": "array"})", {"[]", R"([1, "a", [null]])"}, {"[", "{}"}},
    {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
    {R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}, "minItems": 3})",
     {"[1,2,3]", "[1, 2, 3, 3]"},
     {"[1,2]", "[1]", "[2,1,3]"}},
    {R"({"type": "array", "prefixItems": [{"const": 1}]})", {"[1]"}, {"[]", "[1,2]"}},
    {R"({"type": "array", "prefixItems": [{"const": 1}], "minItems": 3})",
     {R"([1,"a",[]])"},
     {"[1]", "[1,2]", "[1,2,3,4]", "[2,2,2]"}},
    {R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}, {"const": 3}], "maxItems": 2})",
     {"[1,2]"},
     {"[1]", "[1,2,3]", "[1,3]"}},
    {R"({"type": "integer", "minimum": 1e15})", {"1000000000000000"}, {"999999999999999"}},
    {R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})",
     {"1", "\"a\""},
     {"\"ab\"", "true"}},
    {R"({"oneOf": [{"const": 1}, {"$ref": "#/$defs/two"}], "$defs": {"two": {"const": 2}}})",
     {"1", "2"},
     {"3"}},
    {R"({"$ref": "#/$defs/a%20%25%zz~1", "$defs": {"a %%zz/": {"const": 2}}})", {"2"}, {"1"}},
    {R"({"allOf": [{"const": 1}]})", {"1"}, {"2"}},
    {R"({"type": "object", "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
         "required": ["value", "next"]})",
     {R"({"value": 1, "next": {"value": 2, "next": null}})"},
     {R"({"value": 1, "next": {"value": 2}})"}},
    {"true", {"1", "{}", "[[]]", "\"x\""}, {"", "x"}},
    {R"({"description": "anything"})", {"1", "null"}, {"x"}},
};

TEST(JsonSchema, MeansValidTextsAndNoInvalidOnes) {
  for (const auto& [schema, valid, invalid] : kSchemas) {
    const Grammar grammar = Grammar::parse(gbnf_of(schema), schema);
    for (const std::string& text : valid) EXPECT_TRUE(matches(grammar, text)) << schema << text;
    for (const std::string& text : invalid) EXPECT_FALSE(matches(grammar, text)) << schema << text;
  }
}

TEST(JsonSchema, EveryTextOfItsGrammarIsJson) {
  std::mt19937 random(11);
  for (const auto& [schema, valid, invalid] : kSchemas) {
    ByteAutomaton automaton(
        std::make_shared<const Grammar>(Grammar::parse(gbnf_of(schema), schema)));
    int found = 0;
    for (int i = 0; i < 40; ++i) {
      const std::optional<std::string> text = random_text(automaton, random, 4000);
      if (!text) continue;
      ++found;
      ASSERT_TRUE(nlohmann::json::accept(*text)) << schema << *text;
    }
    EXPECT_GT(found, 0) << schema;
  }
}

Grammar grammar_of(const std::string& schema) { return Grammar::parse(gbnf_of(schema), "test"); }

TEST(JsonSchema, WholeNumbersOfARangeAreThoseOfTheRange) {
  std::mt19937 random(3);
  const auto bound = [&] { return static_cast<int>(random() % 2400) - 1200; };
  for (int round = 0; round < 60; ++round) {
    const int a = bound(), b = round % 4 == 0 ? a + static_cast<int>(random() % 30) : bound();
    const int low = std::min(a, b), high = std::max(a, b);
    const bool above = random() % 3 == 0 && low < high, below = random() % 3 == 0 && low < high - 1;
    const Grammar grammar = grammar_of(fmt::format(R"({{"type": "integer", "{}": {}, "{}": {}}})",
                                                   above ? "exclusiveMinimum" : "minimum", low,
                                                   below ? "exclusiveMaximum" : "maximum", high));
    for (int n = -1200; n <= 1200; ++n) {
      const bool inside = low + (above ? 1 : 0) <= n && n <= high - (below ? 1 : 0);
      ASSERT_EQ(matches(grammar, fmt::format("{}", n)), inside) << low << " " << high << " " << n;
    }
    EXPECT_FALSE(matches(grammar, "-0") || matches(grammar, "00") || matches(grammar, ""));
  }
}

TEST(JsonSchema, WholeNumbersOfARangeHave64Bits) {
  using Wide = __int128;
  const auto text = [](Wide n) {
    return n < 0 ? fmt::format("-{}", static_cast<std::uint64_t>(-n))
                 : fmt::format("{}", static_cast<std::uint64_t>(n));
  };
  std::mt19937_64 random(5);
  const Wide least = INT64_MIN, most = UINT64_MAX;
  const auto any = [&] {  // of any number of digits
    const Wide size = static_cast<Wide>(random() >> (random() % 64));
    return random() % 2 == 0 ? size : std::max(least, -size);
  };
  for (int round = 0; round < 300; ++round) {
    Wide low = any(), high = any();
    if (high < low) std::swap(low, high);
    if (round == 0) low = least, high = most;
    if (round == 1) low = INT64_MIN, high = INT64_MAX;
    const Grammar grammar = grammar_of(fmt::format(
        R"({{"type": "integer", "minimum": {}, "maximum": {}}})", text(low), text(high)));
    for (Wide n : {low, low + 1, low - 1, high, high - 1, high + 1, low / 10, high / 10, -low,
                   -high, low + (high - low) / 3, Wide(0), least, most, any(), any(), any()}) {
      if (n < least || n > most) continue;
      ASSERT_EQ(matches(grammar, text(n)), low <= n && n <= high)
          << text(low) << " " << text(high) << " " << text(n);
    }
  }
  const Grammar positive =
      grammar_of(R"({"type": "integer", "exclusiveMinimum": 9223372036854775807})");
  EXPECT_TRUE(matches(positive, "9223372036854775808"));
  EXPECT_FALSE(matches(positive, "9223372036854775807") || matches(positive, "5"));
}

// Every number with at most three decimals, and a few that are as near to a bound as can be.
TEST(JsonSchema, NumbersOfARangeAreThoseOfTheRange) {
  std::mt19937 random(7);
  const auto decimal = [](int thousandths) {
    return fmt::format("{:.3f}", static_cast<double>(thousandths) / 1000);
  };
  for (int round = 0; round < 40; ++round) {
    const int step = std::array{1, 10, 100, 1000}[random() % 4];
    const int a = (static_cast<int>(random() % 2400) - 1200) / step * step;
    const int b = (static_cast<int>(random() % 2400) - 1200) / step * step;
    const int low = std::min(a, b), high = std::max(a, b);
    const bool above = random() % 2 == 0 && low < high, below = random() % 2 == 0 && low < high;
    const Grammar grammar = grammar_of(fmt::format(
        R"({{"type": "number", "{}": {}, "{}": {}}})", above ? "exclusiveMinimum" : "minimum",
        decimal(low), below ? "exclusiveMaximum" : "maximum", decimal(high)));
    const std::string where = fmt::format("{} {} {} {}", decimal(low), decimal(high), above, below);
    for (int n = -1201; n <= 1201; n += 1 + static_cast<int>(random() % 5)) {
      const bool inside = (above ? low < n : low <= n) && (below ? n < high : n <= high);
      std::string text = decimal(n);
      if (text == "-0.000") continue;
      ASSERT_EQ(matches(grammar, text), inside) << where << " " << text;
      while (text.ends_with('0')) text.pop_back();
      if (text.ends_with('.')) text.pop_back();
      ASSERT_EQ(matches(grammar, text), inside) << where << " " << text;
      EXPECT_FALSE(matches(grammar, text + ".") || matches(grammar, "0" + text)) << text;
    }
    const std::string near = "0000000001";
    EXPECT_EQ(matches(grammar, decimal(low) + near), low >= 0 ? low < high : !above && low == 0)
        << where;
    EXPECT_EQ(matches(grammar, decimal(high) + near), high < 0 && low < high) << where;
  }
}

// A number that is not equal to an exclusive bound must not be equal to it as double either.
TEST(JsonSchema, NumbersOfARangeAreNotRoundedToItsEnd) {
  for (const char* bounds :
       {R"("exclusiveMinimum": 0, "exclusiveMaximum": 1)", R"("exclusiveMaximum": 5, "minimum": 4)",
        R"("exclusiveMinimum": 999999.5, "maximum": 1000000)",
        R"("exclusiveMinimum": -0.3, "exclusiveMaximum": 0.1)", R"("exclusiveMinimum": -1)",
        R"("exclusiveMinimum": 99999999999.999, "maximum": 100000000000)"}) {
    const std::string schema = fmt::format(R"({{"type": "number", {}}})", bounds);
    const nlohmann::json json = nlohmann::json::parse(schema);
    ByteAutomaton automaton(std::make_shared<const Grammar>(grammar_of(schema)));
    std::mt19937 random(2);
    for (int i = 0; i < 300; ++i) {
      const std::optional<std::string> text = random_text(automaton, random, 200);
      ASSERT_TRUE(text) << schema;
      const double number = nlohmann::json::parse(*text).get<double>();
      EXPECT_TRUE(number > json.value("exclusiveMinimum", -1e300) &&
                  number < json.value("exclusiveMaximum", 1e300) &&
                  number >= json.value("minimum", -1e300) && number <= json.value("maximum", 1e300))
          << schema << " " << *text;
    }
  }
  const Grammar unit = grammar_of(R"({"type": "number", "exclusiveMaximum": 1})");
  EXPECT_TRUE(matches(unit, "0.99999999999999"));
  EXPECT_FALSE(matches(unit, "0.99999999999999999"));  // as double, this is 1
}

TEST(JsonSchema, RefusesByPlaceWhatItDoesNotUnderstand) {
  const std::pair<const char*, const char*> cases[] = {
      {"3", "schema: expected a schema (an object or true), found 3"},
      {"false", "schema: expected a schema (an object or true), found false"},
      {R"({"type": "text"})",
       "schema: type: expected object, array, string, integer, number, boolean or null, found "
       "\"text\""},
      {R"({"properties": {"a": {"type": "number", "multipleOf": 2}}})",
       "schema: properties.a.multipleOf: expected 1, 0.1, 0.01 ..., found 2"},
      {R"({"type": "integer", "multipleOf": 5})",
       "schema: multipleOf: expected 1, 0.1, 0.01 ..., found 5"},
      {R"({"type": "number", "multipleOf": 0.02})",
       "schema: multipleOf: expected 1, 0.1, 0.01 ..., found 0.02"},
      {R"({"maxLenght": 3})", "schema: maxLenght: not supported in a schema"},
      {R"({"type": "object", "oneOf": [{}], "properties": {}})",
       "schema: oneOf: not supported together with 'type'"},
      {R"({"oneOf": [{}], "type": "object"})", "schema: oneOf: not supported together with 'type'"},
      {R"({"$ref": "#/$defs/a", "minimum": 1, "$defs": {"a": {}}})",
       "schema: $ref: not supported together with 'minimum'"},
      {R"({"const": 1, "minimum": 1})", "schema: minimum: not supported together with 'const'"},
      {R"({"type": "string", "maxLength": 5, "pattern": "a"})",
       "schema: maxLength: not supported together with 'pattern'"},
      {R"({"type": "string", "format": "date", "pattern": "a"})",
       "schema: format: not supported together with 'pattern'"},
      {R"({"type": "number", "minimum": true})",
       "schema: minimum: expected a number of at most 15 digits, found true"},
      {R"({"type": "number", "minimum": 1e300})",
       "schema: minimum: expected a number of at most 15 digits, found 1e+300"},
      {R"({"type": "number", "minimum": 1234567890123456})",
       "schema: minimum: expected a number of at most 15 digits, found 1234567890123456"},
      {R"({"type": "number", "minimum": 0.30000000000000004})",
       "schema: minimum: expected a number of at most 15 digits, found 0.30000000000000004"},
      {R"({"type": "integer", "maximum": 18446744073709551616})",
       "schema: maximum: expected a whole number of 64 bits, found 1.8446744073709552e+19"},
      {R"({"type": "integer", "minimum": 0.1, "maximum": 0.9})",
       "schema: expected a range that contains a whole number, found an object"},
      {R"({"type": "number", "exclusiveMinimum": 1.5, "maximum": 1.5})",
       "schema: expected a range that contains a number, found an object"},
      {R"({"type": "array", "uniqueItems": true})",
       "schema: uniqueItems: not supported in a schema"},
      {R"({"not": {}})", "schema: not: not supported in a schema"},
      {R"x({"type": "string", "pattern": "a(?=b)"})x",
       "schema: pattern: column 4: expected (?: or a group without '?'"},
      {R"({"type": "string", "pattern": "^a|b$"})",
       "schema: pattern: column 1: expected a group around a choice between ^ and $: ^(a|b)$"},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})",
       "schema: maxLength: expected at least 3 (the minimum), found 2"},
      {R"({"type": "array", "minItems": 3, "maxItems": 2})",
       "schema: maxItems: expected at least 3 (the minimum), found 2"},
      {R"({"type": "string", "pattern": "^a{20000}$"})",
       "schema: pattern: column 4: expected at most 10000 repetitions"},
      {R"({"type": "string", "pattern": "a{2,10001}"})",
       "schema: pattern: column 5: expected at most 10000 repetitions"},
      {R"({"type": "string", "pattern": "a{5,3}"})",
       "schema: pattern: column 2: expected {m,n} with m not above n"},
      {R"({"type": "string", "pattern": "a{,3}"})",
       "schema: pattern: column 5: expected {m}, {m,} or {m,n}"},
      {R"({"$ref": "other.json"})",
       "schema: $ref: expected a path in this document, such as #/$defs/NAME, found "
       "\"other.json\""},
      {R"({"$ref": "#/$defs/x"})",
       "schema: $ref: expected a path to a value in this document, found \"#/$defs/x\""},
      {R"({"enum": [1], "type": "string"})",
       "schema: enum[0]: expected a value of the schema's 'type', found 1"},
      {R"({"required": ["a"], "additionalProperties": false})",
       "schema: required: expected names from 'properties', found an array of 1"},
      {R"({"type": "integer", "minimum": 3, "maximum": 2})",
       "schema: expected a range that contains a whole number, found an object"},
  };
  for (const auto& [schema, message] : cases) {
    try {
      gbnf_of(schema);
      ADD_FAILURE() << schema << " was accepted";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message) << schema;
    }
  }
}

// Such a schema says nothing, and its rule would begin with itself.
TEST(JsonSchema, NamesAReferenceThatLeadsBackToItself) {
  const std::string why = ": expected a schema that does not consist of itself, found ";
  const std::pair<const char*, std::string> cases[] = {
      {R"({"$ref": "#"})", "schema: $ref" + why + "\"#\""},
      {R"({"properties": {"a": {"$ref": "#/properties/a"}}})",
       "schema: properties.a.$ref" + why + "\"#/properties/a\""},
      {R"({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {
           "a": {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/b"}]}, "n": {},
           "b": {"oneOf": [{"$ref": "#/$defs/c"}]}, "c": {"$ref": "#/$defs/b"}}})",
       "schema: $defs.a.anyOf[1].$ref" + why + "\"#/$defs/b\""},
  };
  for (const auto& [schema, message] : cases) {
    for (const BeyondGrammar beyond : {BeyondGrammar::Refuse, BeyondGrammar::Ignore}) {
      try {
        json_schema_gbnf(Json(schema, "schema").root(), beyond);
        ADD_FAILURE() << schema << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.what(), message);
      }
    }
  }
}

// A path to an element of an array is an index as Python and JavaScript write it.
TEST(JsonSchema, FollowsAReferenceIntoAnArray) {
  const std::string begin = R"({"$ref": "#/examples/)", end = R"(", "examples": [7, true]})";
  EXPECT_EQ(gbnf_of(begin + "1" + end).substr(0, 14), "root ::= ref-1");
  for (const char* index : {"2", "01", "-1", "+1", "1 ", "", "a", "1.0", "99999999999999999999"}) {
    EXPECT_THROW(gbnf_of(begin + index + end), Error) << index;
  }
}

// One request of a client may contain both, and the server answers no other meanwhile.
TEST(JsonSchema, FollowsManyReferencesIntoALongArrayInAShortTime) {
  std::string schema = R"({"anyOf": [)", elements;
  for (int i = 0; i < 30'000; ++i) {
    schema += fmt::format(R"({}{{"$ref":"#/examples/{}"}})", i > 0 ? "," : "", i);
    elements += i > 0 ? ",true" : "true";
  }
  schema += R"(], "examples": [)" + elements + "]}";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(gbnf_of(schema).find("\nref-30000 ::= value\n"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// In each of these, a short schema stands for a long grammar, or for much work.
TEST(JsonSchema, RefusesAtOnceWhatWouldTakeMinutes) {
  const auto repeated = [](const std::string& one, int n, const char* between = ",") {
    std::string all = one;
    for (int i = 1; i < n; ++i) all += between + one;
    return all;
  };
  const std::string too_large =
      "schema: expected a schema whose grammar has at most 1048576 bytes, found more";
  std::string circle = R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [)", ends;
  for (int i = 0; i < 7000; ++i) {
    circle += fmt::format(R"({{"$ref": "#/$defs/e{}"}},)", i);
    ends += fmt::format(R"(,"e{}": true,"f{}": {{"$ref": "#/$defs/a"}})", i, i);
  }
  circle += R"({"$ref": "#/$defs/a"}]})" + ends + "}}";
  const std::pair<std::string, std::string> cases[] = {
      {R"({"type": [)" + repeated(R"("string")", 1000) + R"(], "pattern": "^)" +
           repeated(R"(\\S)", 100, "") + R"("})",
       R"(schema: type[1]: expected each type once, found "string")"},
      {R"({"type": "string", "pattern": "^)" + repeated(R"(\\S)", 100'000, "") + R"("})",
       "schema: pattern: column "},
      {R"({"prefixItems": [)" + repeated(R"({"format": "date-time"})", 20'000) + "]}", too_large},
      {R"({"enum": [)" + repeated("[[[[[[]]]]]]", 80'000) + "]}", too_large},
      {circle, R"(schema: $ref: expected a schema that does not consist of itself, found )"},
  };
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [schema, message] : cases) {
    try {
      (void)gbnf_of(schema);
      ADD_FAILURE() << message << ": was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, message.size()), message);
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// Keywords that a grammar cannot express are ignored on request. Every valid value stays possible.
TEST(JsonSchema, IgnoresOnRequestWhatNoGrammarExpresses) {
  const SchemaCase cases[] = {
      {R"({"type": "array", "items": {"type": "integer"}, "uniqueItems": true, "contains": {}})",
       {"[1,1]"},
       {"[true]"}},
      {R"({"type": "integer", "multipleOf": 5, "minimum": 2})", {"5", "3"}, {"1"}},
      {R"({"type": "number", "maximum": 1e300})", {"5"}, {"true"}},
      {R"({"type": "string", "maxLength": 100000})", {"\"\""}, {"1"}},
      {R"({"type": "string", "pattern": "^(?!a).+$", "maxLength": 2})", {"\"ab\""}, {"\"abc\""}},
      {R"({"type": "string", "pattern": "^[a-z]+$", "maxLength": 2})", {"\"ab\""}, {"\"A\""}},
      {R"({"type": "string", "format": "date", "pattern": "^1"})", {"\"1\""}, {"\"2\""}},
      {R"({"not": {"type": "null"}})", {"1"}, {"x"}},
      {R"({"if": {"type": "string"}, "then": {"minLength": 3}})", {"1", "\"abc\""}, {}},
      {R"({"$ref": "https://json-schema.org/draft/2020-12/schema"})", {"1", "{}"}, {"x"}},
      {R"({"enum": ["a", null], "type": "string", "nullable": true})", {"\"a\"", "null"}, {"1"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}}, "minProperties": 2})",
       {R"({"a":1,"b":"x"})"},
       {R"({"a":"x"})"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false,
           "minProperties": 1})",
       {R"({"a":1})"},
       {R"({"b":1})"}},
      {R"({"type": "object", "patternProperties": {"^x-": {"const": 1}},
           "additionalProperties": false})",
       {R"({"x-a":1})"},
       {"1"}},
      {R"({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
           "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})",
       {R"({"a":"x"})", R"({"b":"x"})"},
       {R"({"a":1})"}},
      {R"({"allOf": [{"type": "object", "properties": {"x": {"type": "string"}}},
                     {"type": "object", "properties": {"y": {"type": "string"}}}]})",
       {R"({"x":"a","y":"b"})", R"({"y":"b"})"},
       {R"({"x":1})", "1"}},
      {R"({"allOf": [{"properties": {"p": {"properties": {"x": {"const": 1}}}}},
                     {"properties": {"p": {"required": ["y"]}}}]})",
       {R"({"p":{"x":1,"y":2}})"},
       {R"({"p":{"x":2}})"}},
      {R"({"$ref": "#/$defs/a", "required": ["b"], "$defs": {"a": {"type": "object", "properties":
           {"a": {"const": 1}}}}})",
       {R"({"a":1,"b":2})"},
       {R"({"a":2})", "1"}},
      {R"({"type": "object", "anyOf": [{"properties": {"a": {"const": 1}}},
                                       {"properties": {"b": {"const": 1}}}]})",
       {R"({"a":1,"c":2})", R"({"b":1})"},
       {"1"}},
      {R"({"allOf": [{"prefixItems": [{"const": 1}]}, {"minItems": 2}]})", {"[1,2]", "[1]"}, {"1"}},
  };
  for (const auto& [schema, valid, invalid] : cases) {
    EXPECT_THROW(gbnf_of(schema), Error) << schema;  // without the request
    const Grammar grammar = Grammar::parse(
        json_schema_gbnf(Json(schema, "schema").root(), BeyondGrammar::Ignore), schema);
    for (const std::string& text : valid) EXPECT_TRUE(matches(grammar, text)) << schema << text;
    for (const std::string& text : invalid) EXPECT_FALSE(matches(grammar, text)) << schema << text;
  }
  for (const char* wrong :
       {R"({"type": "text"})", R"({"type": "string", "minLength": "3"})", R"({"anyOf": []})",
        R"({"$ref": "#/$defs/x"})", R"({"type": "integer", "minimum": 3, "maximum": 2})",
        R"({"required": true})", R"({"type": "string", "minLength": 3, "maxLength": 2})", "false",
        R"({"required": ["a"], "additionalProperties": false})",
        R"({"properties": {"a": false}, "required": ["a"]})",
        R"({"type": "string", "enum": [1, 2]})", R"({"type": "string", "const": 1})"}) {
    EXPECT_THROW(json_schema_gbnf(Json(wrong, "schema").root(), BeyondGrammar::Ignore), Error)
        << wrong;
  }
}

TEST(JsonSchema, AllowsOnlyObjectsWhereArgumentsStand) {
  const std::pair<const char*, const char*> cases[] = {
      // schema, a valid text
      {"{}", R"({"z":1})"},
      {R"({"not": {}})", R"({"z":1})"},
      {R"({"type": ["object", "null"], "properties": {"a": {"const": 1}}})", R"({"a":1})"},
      {R"({"anyOf": [{"type": "object"}, {"type": "string"}]})", R"({"z":1})"},
      {R"({"allOf": [{"if": {}}, {"properties": {"a": {"const": 1}}}]})", R"({"a":1,"z":1})"},
  };
  for (const auto& [schema, valid] : cases) {
    JsonGrammar grammar;
    const std::string root =
        grammar.add_object(Json(schema, "schema").root(), BeyondGrammar::Ignore);
    const Grammar rules =
        Grammar::parse(fmt::format("root ::= {}\n{}", root, grammar.rules()), "test");
    EXPECT_TRUE(matches(rules, valid)) << schema;
    for (const char* other : {"null", "\"a\"", "1", "[]", R"({"a":2})"}) {
      const bool is_object =
          other[0] == '{' && std::string_view(schema).find("const") == std::string_view::npos;
      EXPECT_EQ(matches(rules, other), is_object) << schema << other;
    }
  }
  for (const char* schema :
       {R"({"type": "string"})", R"({"type": ["string", "null"]})", R"({"enum": [1]})"}) {
    JsonGrammar grammar;
    EXPECT_THROW(grammar.add_object(Json(schema, "schema").root(), BeyondGrammar::Ignore), Error);
  }
}

// A rule for each beginning of a name takes memory that grows with the length, not with its square.
TEST(JsonSchema, RefusesPropertyNamesTooLongToTellFromOthers) {
  const std::string name(900'000, 'a');
  try {
    gbnf_of(R"({"properties": {")" + name + R"(": {}}, "additionalProperties": {}})");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "schema: properties: expected names of at most 10000 characters in all, found "
                 "more");
  }
  const std::string fits(5'000, 'a');
  const Grammar grammar = Grammar::parse(
      gbnf_of(R"({"properties": {")" + fits + R"(": {"const": 1}}, "additionalProperties": {}})"),
      "test");
  EXPECT_TRUE(matches(grammar, "{\"" + fits + "\":1}"));
  EXPECT_FALSE(matches(grammar, "{\"" + fits + "\":2}"));
  EXPECT_TRUE(matches(grammar, "{\"" + fits.substr(1) + "\":2}"));
}

}  // namespace
}  // namespace stagecraft
