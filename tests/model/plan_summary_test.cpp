#include "model/plan_summary.h"

#include <gtest/gtest.h>

#include <map>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_source.h"
#include "model/description.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

std::map<std::string, std::string> summary_of(const std::string& name) {
  const ModelSource model(kModels + name);
  std::map<std::string, std::string> values;
  for (const auto& [what, value] :
       plan_summary(describe_model(model).plan, Checkpoint::open(model))) {
    values.emplace(what, value);
  }
  return values;
}

TEST(PlanSummary, SaysHowLayersDiffer) {
  const auto gemma = summary_of("gemma3-layer-types");
  EXPECT_EQ(gemma.at("attention"), "4 heads of 6, 2 for keys and values, norm on q and k, biases");
  EXPECT_EQ(gemma.at("window"), "4 tokens, on 1 of 2 layers");
  EXPECT_EQ(gemma.at("positions"), "RoPE, theta 50000; theta 300");
  const auto lfm2 = summary_of("lfm2-biases");
  EXPECT_TRUE(lfm2.at("attention").ends_with(", in 1 of 3 layers")) << lfm2.at("attention");
  EXPECT_EQ(lfm2.at("state"), "short convolution of 4 rows in 2 layers");
}

TEST(PlanSummary, CountsTheParametersThatATokenUses) {
  const auto mixtral = summary_of("mixtral-2-of-5");
  EXPECT_EQ(mixtral.at("parameters"), "12,080, 6,608 for each token");
  EXPECT_EQ(mixtral.at("experts"), "5, 2 per token, feed-forward 19");
  EXPECT_EQ(mixtral.at("width"), "16");  // no layer without experts
  EXPECT_EQ(mixtral.count("state"), 0u);
}

TEST(PlanSummary, NamesWhatTakesTheRolesOfRopeAndOfTheHead) {
  const auto gpt2 = summary_of("gpt2-tied");
  EXPECT_EQ(gpt2.at("positions"), "learned, 64 rows");
  EXPECT_EQ(gpt2.at("vocabulary"), "37 rows, tied to the output head");
  EXPECT_EQ(summary_of("bloom-4-heads").at("positions"), "ALiBi");
}

}  // namespace
}  // namespace stagecraft
