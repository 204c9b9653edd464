// If a file or an option asks for too much memory or too many threads, there is an Error, and the
// process is never killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/usable_memory.h"
#include "generation/session.h"
#include "generation/text_memory.h"
#include "tests/hostile/bad_model.h"
#include "tests/hostile/run_limited.h"
#include "tests/support/engines.h"

namespace stagecraft {
namespace {

std::vector<std::string> story_with(const TinyModel& model, std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "story", "--model", model.folder().string(), "--ids", "1,2,3", "--print-ids",
      "-n",    "4",       "--temperature",         "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Limits, AContextThatNoMachineHoldsIsRefusedBeforeAnythingIsAllocated) {
  const TinyModel tiny;
  Engine model = textbook_engine(tiny.folder());
  for (const std::size_t context : {std::size_t{1} << 50, SIZE_MAX}) {
    try {
      Session(model, context);
      ADD_FAILURE() << "a session of " << context << " tokens";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("context: expected at most "))
          << error.what();
    }
  }
}

TEST(Limits, SessionBytesCountsKeysAndValues) {
  const TinyModel tiny;
  const Plan plan = describe_model(tiny.folder()).plan;
  const EngineOptions textbook{BackendKind::Textbook};
  const double a_position =
      session_bytes(plan, textbook, 2000) - session_bytes(plan, textbook, 1999);
  // The token; 2 layers x keys and values of 2 heads of 6; 4 heads x 64 rows of probabilities.
  EXPECT_EQ(a_position, 4.0 * (2 * 2 * 12 + 4 * 64) + 4.0);
}

TEST(Limits, TextsOfOneEngineShareTheMemoryOfAPass) {
  const TinyModel tiny;
  const Plan plan = describe_model(tiny.folder()).plan;
  const EngineOptions cpu{.kv_type = KvType::F16};
  const double one = session_bytes(plan, cpu, 100), two = session_bytes(plan, cpu, 100, 2);
  EXPECT_EQ(two - one, one - sequence_bytes(plan, cpu, 100).workspace);
}

TEST(Limits, ALongContextCostsOnlyWhatIsUsed) {
  TinyModel tiny;
  config(R"({"max_position_embeddings": 16777216})")(tiny);
  const LimitedRun run = run_limited(story_with(tiny, {"--threads", "1"}));
  EXPECT_EQ(run.code, 0) << run.ended_by << run.err;
  EXPECT_EQ(run.err, "");
}

TEST(Limits, AContextBeyondTheMemoryThatAProgramMayHaveIsOneLine) {
  if (!limits_memory()) GTEST_SKIP() << "memory has no limit here";
  const TinyModel tiny;
  const LimitedRun run = run_limited(story_with(tiny, {"--threads", "1", "--context", "10000000"}));
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_TRUE(run.err.starts_with("stagecraft: context: ")) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
}

TEST(Limits, TextsBeyondTheMemoryThatAProgramMayHaveAreOneLine) {
  if (!limits_memory()) GTEST_SKIP() << "memory has no limit here";
  TinyModel tiny;
  config(R"({"max_position_embeddings": 16777216})")(tiny);
  write_file(tiny.file("tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const LimitedRun run = run_limited({"story", "--model", tiny.folder().string(), "aaa",
                                      "--threads", "1", "--context", "3000000", "--stories", "3"});
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_TRUE(run.err.starts_with("stagecraft: context: 3000000 tokens for each of 3 texts need "))
      << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
}

// Each of the two models alone would fit: the error comes before memory is allocated.
TEST(Limits, TwoServedModelsThatNeedMoreMemoryTogetherAreOneLine) {
  TinyModel tiny;
  config(R"({"max_position_embeddings": 16777216})")(tiny);
  write_file(tiny.file("tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const Plan plan = describe_model(tiny.folder()).plan;
  constexpr std::size_t kTexts = 256;
  std::size_t context = 1000;
  while (session_bytes(plan, {.kv_type = KvType::F16}, context, kTexts) < 0.6 * usable_memory()) {
    context += context / 8;
  }
  const std::string model = tiny.folder().string();
  const LimitedRun run = run_limited({"serve", "--model", model, "--beside", model, "--port", "0",
                                      "--parallel", std::to_string(kTexts), "--kv-type", "f16",
                                      "--context", std::to_string(context)});
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_TRUE(
      run.err.starts_with("stagecraft: --beside: expected two models whose texts fit into "))
      << run.err;
}

TEST(Limits, ThreadsBeyondWhatTheSystemStartsAreOneLine) {
  if (!limits_memory()) GTEST_SKIP() << "memory has no limit here";
  const TinyModel tiny;  // 255 stacks of 8 MB do not fit into 1 GB
  const LimitedRun run = run_limited(story_with(tiny, {"--threads", "256", "--textbook"}));
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_TRUE(run.err.starts_with("stagecraft: threads: expected at most ")) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1);
}

TEST(Limits, ATokenOfTheModelThatTheTokenizerLacksHasNoText) {
  const TinyModel tiny;
  write_file(tiny.file("tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const LimitedRun run =
      run_limited({"story", "--model", tiny.folder().string(), "aaa", "--threads", "1"});
  EXPECT_EQ(run.code, 0) << run.ended_by << run.err;
  EXPECT_TRUE(run.out.starts_with("aaa")) << run.out;
}

void put_nan_into(TinyModel& tiny) {
  with_tensor("model.norm.weight", DType::F32, {24})(tiny);
  std::string file = read_file(tiny.file("model.safetensors"));
  file.replace(file.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));  // its last number: NaN
  write_file(tiny.file("model.safetensors"), file);
}

TEST(Limits, WeightsThatAreNoNumbersEndInOneLine) {
  TinyModel tiny;
  put_nan_into(tiny);
  const LimitedRun run = run_limited(story_with(tiny, {"--threads", "1"}));
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_TRUE(run.err.starts_with("stagecraft: " + tiny.folder().string() +
                                  ": the model computed the logit "))
      << run.err;
  EXPECT_TRUE(run.err.ends_with(
      "nan for token 0: the weights are broken, or the code that computes with them\n"))
      << run.err;
}

TEST(Limits, BenchAndPerplexityNameTheModelWhoseWeightsAreNoNumbers) {
  TinyModel tiny;
  put_nan_into(tiny);
  write_file(tiny.file("tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  write_file(tiny.file("text"), "aaaa");
  const std::string model = tiny.folder().string();
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"bench", "-m", model, "-p", "2", "-n", "0", "-t", "1"},
           {"perplexity", "-m", model, "--text", tiny.file("text").string()},
           {"peek", "-m", model, "aa"}}) {
    const LimitedRun run = run_limited(command);
    EXPECT_EQ(run.code, 1) << command[0] << run.ended_by;
    EXPECT_TRUE(run.err.find("stagecraft: " + model + ": the model computed the logit ") !=
                std::string::npos)
        << command[0] << ": " << run.err;
  }
}

TEST(Limits, PeekRefusesLogitsAndAttentionThatAreNoNumbers) {
  const auto peek = [](const TinyModel& tiny, const std::vector<std::string>& more) {
    write_file(tiny.file("tokenizer.json"),
               R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
    std::vector<std::string> all = {"peek", "aaa", "--model", tiny.folder().string()};
    all.insert(all.end(), more.begin(), more.end());
    const LimitedRun run = run_limited(all);
    EXPECT_EQ(run.code, 1) << run.ended_by;
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  for (const char* name : {"model.norm.weight", "model.layers.0.input_layernorm.weight"}) {
    TinyModel tiny;
    with_tensor(name, DType::F32, {24})(tiny);
    std::string file = read_file(tiny.file("model.safetensors"));
    file.replace(file.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));  // its last number: NaN
    write_file(tiny.file("model.safetensors"), file);
    EXPECT_TRUE(peek(tiny, {}).find("nan for token 0: ") != std::string::npos);
    const std::string err = peek(tiny, {"--attention", "0.1", "--top", "0"});
    const bool attends = std::string_view(name) != "model.norm.weight";
    EXPECT_EQ(err.find("nan in layer 0, head 1, from position 0 to 0: ") != std::string::npos,
              attends)
        << err;
  }
}

// All experts then have the routing weight NaN, but memory exists only for the chosen ones.
TEST(Limits, SharesOfExpertsThatAreNoNumbersEndInOneLine) {
  const TinyModel moe("mixtral-2-of-5");
  const std::filesystem::path weights = moe.file("model.safetensors");
  std::string file = read_file(weights);
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), sizeof header_size);
  const auto header = nlohmann::json::parse(file.substr(sizeof header_size, header_size));
  const nlohmann::json& offsets =
      header.at("model.layers.0.post_attention_layernorm.weight").at("data_offsets");
  const std::size_t begin = offsets[0], end = offsets[1];
  file.replace(sizeof header_size + header_size + begin, end - begin, end - begin, '\xff');
  write_file(weights, file);
  const LimitedRun run = run_limited(story_with(moe, {"--threads", "1"}));
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_TRUE(run.err.find(": the model computed the logit ") != std::string::npos) << run.err;
}

}  // namespace
}  // namespace stagecraft
