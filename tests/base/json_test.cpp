#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

// Processor time, the best of three runs, because other programs may be running.
double seconds_of(const std::function<void()>& work) {
  double best = INFINITY;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

std::string message_of(const std::string& text) {
  return error_of([&] { Json(text, "file"); });
}

constexpr int kMany = 100'000;
// In seconds, also under a sanitizer. Comparing with all siblings would take minutes.
constexpr double kLongest = 5.0;

nlohmann::json as_nlohmann(JsonNode node) {
  if (node.is_null()) return nullptr;
  if (node.is_boolean()) return node.boolean();
  if (node.is_integer()) return node.integer();
  if (node.is_whole()) return node.whole();
  if (node.is_number()) return node.number();
  if (node.is_string()) return std::string(node.string());
  auto value = node.is_array() ? nlohmann::json::array() : nlohmann::json::object();
  if (node.is_array()) {
    for (const JsonNode element : node.elements()) value.push_back(as_nlohmann(element));
  } else {
    for (const JsonNode member : node.members()) {
      value[std::string(member.key())] = as_nlohmann(member);
    }
  }
  return value;
}

TEST(Json, IsReadAsNlohmannReadsIt) {
  for (const std::string text :
       {R"({"a": [1, -2, 3.5, true, null, "x\n", [], {}], "b": {"c": {"d": [[0]]}}, "": 1e3})", "7",
        "\"x\"", "null", "[]", "{}", "-1", "1.5", "[18446744073709551615, 18446744073709551616]"}) {
    EXPECT_EQ(as_nlohmann(Json(text, "file").root()), nlohmann::json::parse(text)) << text;
  }
}

TEST(Json, DescribesValues) {
  const Json json(R"([null, true, -7, 2.0, 1e-5, "a\nb", [1, 2], {"a": 1}])", "file");
  std::vector<std::string> described;
  for (const JsonNode node : json.root().elements()) described.push_back(node.describe());
  EXPECT_EQ(described, (std::vector<std::string>{"null", "true", "-7", "2.0", "1e-05",
                                                 "\"a\\x0ab\"", "an array of 2", "an object"}));
}

TEST(Json, ComparesValues) {
  const Json json(R"([{"a": [1, "x", null], "b": {}}, {"b": {}, "a": [1.0, "x", null]},
                      {"a": [1, "x", false], "b": {}}, {"a": [1, "x", null]},
                      {"a": [1, "x", null], "c": {}}, {"a": ["x", 1, null], "b": {}}, []])",
                  "file");
  std::vector<JsonNode> nodes;
  for (const JsonNode node : json.root().elements()) nodes.push_back(node);
  EXPECT_TRUE(nodes[0] == nodes[1]);
  for (std::size_t i = 2; i < nodes.size(); ++i) {
    EXPECT_FALSE(nodes[0] == nodes[i]) << i;
    EXPECT_FALSE(nodes[i] == nodes[0]) << i;
  }
}

TEST(Json, ComparesLargeWholeNumbersExactly) {
  const Json json(
      "[9007199254740992, 9007199254740993, 18446744073709551614, 18446744073709551615]", "file");
  std::vector<JsonNode> nodes;
  for (const JsonNode node : json.root().elements()) nodes.push_back(node);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t j = 0; j < nodes.size(); ++j) EXPECT_EQ(nodes[i] == nodes[j], i == j);
  }
}

TEST(Json, RefusesAKeyThatIsThereTwiceWhereverItIs) {
  EXPECT_EQ(message_of(R"({"a": 1, "b": 2, "a": 3})"), "file: 'a' is given twice");
  EXPECT_EQ(message_of(R"([{"a": [{"b": 1, "b": {}}]}])"), "file: '[0].a[0].b' is given twice");
  EXPECT_EQ(message_of(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})"), "");
  EXPECT_EQ(message_of(R"({"x": [{"long key 1": 1, "long key 2": 2, "long key 1": 3}]})"),
            "file: 'x[0].long key 1' is given twice");
}

TEST(Json, SaysWhereItIsNoJson) {
  EXPECT_EQ(message_of("{\"a\": 1,\n  x}"),
            "file: not valid JSON: line 2, column 3: invalid literal");
  EXPECT_EQ(message_of("{\"a\": 1,\n  ]"),
            "file: not valid JSON: line 2, column 3: unexpected ']'; expected string literal");
  EXPECT_EQ(message_of("{\"a\": 1e999}"), "file: not valid JSON: number out of range '1e999'");
  EXPECT_EQ(message_of(""), "file: expected JSON, found nothing");
  EXPECT_EQ(message_of(std::string("{}\0x", 4)),
            "file: not valid JSON: a zero byte at line 1, column 3");
  EXPECT_EQ(message_of(std::string(65, '[')), "file: nested deeper than 64 levels");
  EXPECT_EQ(message_of(std::string(64, '[') + std::string(64, ']')), "");
}

TEST(Json, FindsEveryMemberOfALargeObject) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += fmt::format("\"k{}\": {}, ", i * 7919 % 1000, i);
  const Json document(text + "\"none\": null}", "file");
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(document.root().at(fmt::format("k{}", i * 7919 % 1000)).integer(), i);
  }
  EXPECT_FALSE(document.root().find("none"));
  EXPECT_FALSE(document.root().find("k1000"));
}

TEST(Json, ManyMembersAndElementsAreReadInLinearTime) {
  std::string objects = "{";
  for (int i = 0; i < kMany; ++i) {
    objects += fmt::format("{}\"tensor.number.{}\": {{\"shape\": [1, 2], \"dtype\": \"F32\"}}",
                           i == 0 ? "" : ", ", i);
  }
  objects += "}";
  EXPECT_LT(seconds_of([&] {
              const Json document(objects, "file");
              for (int i = 0; i < kMany; ++i)
                document.root().at(fmt::format("tensor.number.{}", i));
            }),
            kLongest);
}

TEST(Json, AHeaderOfAHundredThousandTensorsIsReadInLinearTime) {
  const TemporaryFolder folder;
  const float zero = 0.0f;
  std::vector<StoredTensor> tensors;
  for (int i = 0; i < kMany; ++i) {
    tensors.push_back({fmt::format("model.layers.{}.self_attn.q_proj.weight", i),
                       DType::F32,
                       {1},
                       std::as_bytes(std::span(&zero, 1))});
  }
  const auto path = folder.path() / "many.safetensors";
  write_safetensors(path, tensors, {});
  EXPECT_LT(seconds_of([&] {
              const SafetensorsFile file(path);
              EXPECT_EQ(file.tensors().size(), tensors.size());
            }),
            kLongest);
}

TEST(JsonBuilder, MakesWhatATextSays) {
  JsonBuilder json("model.gguf: tokenizer");
  json.object([&] {
    json.key("type").text("B\"PE\n");
    json.key("flag").boolean(true);
    json.key("none").null();
    json.key("ids").array([&] {
      json.integer(-1);
      json.json(R"({"a": [1.5, "x"]})");
    });
    json.key("").object([] {});
  });
  const Json made = json.take();
  const std::string text =
      R"({"type":"B\"PE\n","flag":true,"none":null,"ids":[-1,{"a":[1.5,"x"]}],"":{}})";
  EXPECT_EQ(json_text(made.root()), text);
  EXPECT_TRUE(made.root() == Json(text, "file").root());
  EXPECT_EQ(made.root().at("ids").where(), "model.gguf: tokenizer: ids");
}

TEST(JsonBuilder, RefusesAKeyThatComesTwice) {
  const auto problem = [](auto add_members) -> std::string {
    JsonBuilder json("file");
    try {
      json.object([&] { json.key("in").object([&] { add_members(json); }); });
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem([](JsonBuilder& json) {
              json.key("a").null();
              json.key("b").null();
              json.key("a").null();
            }),
            "file: 'in.a' is given twice");
  EXPECT_EQ(problem([](JsonBuilder& json) {  // many keys with the same first bytes
              for (int i = 0; i < 1000; ++i)
                json.key(fmt::format("tensor number {}", i % 999)).null();
            }),
            "file: 'in.tensor number 0' is given twice");
}

}  // namespace
}  // namespace stagecraft
