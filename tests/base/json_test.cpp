#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <functional>

#include "checkpoint/safetensors.h"
#include "tests/support/temporary_folder.h"
#include "text/json_document.h"

namespace stagecraft {
namespace {

// Of the processor, the best of three: a machine may have other things to do.
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
  try {
    parse_json(text, "file");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

constexpr int kMany = 100'000;
constexpr double kLongest = 1.0;  // seconds; a look at all siblings takes minutes

TEST(Json, IsReadAsNlohmannReadsIt) {
  const std::string text =
      R"({"a": [1, -2, 3.5, true, null, "x\n", [], {}], "b": {"c": {"d": [[0]]}}, "": 1e3})";
  EXPECT_EQ(parse_json(text, "file"), Json::parse(text));
  for (const std::string root : {"7", "\"x\"", "null", "[]", "{}", "-1", "1.5"}) {
    EXPECT_EQ(parse_json(root, "file"), Json::parse(root));
  }
}

TEST(Json, RefusesAKeyThatIsThereTwiceWhereverItIs) {
  EXPECT_EQ(message_of(R"({"a": 1, "b": 2, "a": 3})"), "file: 'a' is given twice");
  EXPECT_EQ(message_of(R"([{"a": [{"b": 1, "b": {}}]}])"), "file: 'b' is given twice");
  EXPECT_EQ(message_of(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})"), "");
  EXPECT_THROW(JsonDocument::parse(
                   R"({"x": [{"long key 1": 1, "long key 2": 2, "long key 1": 3}]})", "file"),
               Error);
}

TEST(Json, SaysWhereItIsNoJson) {
  EXPECT_EQ(message_of("{\"a\": 1,\n  x}"), "file: not valid JSON: line 2, column 3");
  EXPECT_EQ(message_of("{\"a\": 1e999}"), "file: not valid JSON: number out of range '1e999'");
  EXPECT_EQ(message_of(std::string(65, '[')), "file: nested deeper than 64 levels");
  EXPECT_EQ(message_of(std::string(64, '[') + std::string(64, ']')), "");
}

TEST(Json, FindsEveryMemberOfALargeObject) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += fmt::format("\"k{}\": {}, ", i * 7919 % 1000, i);
  const auto document = JsonDocument::parse(text + "\"none\": null}", "file");
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
  EXPECT_LT(seconds_of([&] { parse_json(objects, "file"); }), kLongest);
  EXPECT_LT(seconds_of([&] {
              const auto document = JsonDocument::parse(objects, "file");
              for (int i = 0; i < kMany; ++i)
                document.root().at(fmt::format("tensor.number.{}", i));
            }),
            kLongest);
}

TEST(Json, AHeaderOfAHundredThousandTensorsIsReadInASecond) {
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

}  // namespace
}  // namespace stagecraft
