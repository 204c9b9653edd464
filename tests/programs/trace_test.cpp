// The commands trace and compare, as a user runs them.
#include <gtest/gtest.h>
#include <algorithm>

#include <cmath>
#include <cstring>
#include <functional>

#include "inspection/trace.h"
#include "inspection/trace_file.h"
#include "tests/support/engines.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_chat_model.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

const std::string kTracedModel = kModels + "llama-gqa3";  // 6 heads of 4 over 2 key heads, 2 layers

ProgramResult run_trace(const std::string& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"trace",     "--model", kTracedModel, "--ids",
                                        "1,2,3,4,5", "--out",   out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

std::vector<Activation> five_tokens() {
  const std::vector<TokenId> ids = {1, 2, 3, 4, 5};
  const std::vector<std::size_t> passes = {5};
  Engine engine = walker_engine(kTracedModel);
  return trace(engine, ids, passes);
}

// The output of `compare` for the trace of five tokens and the same trace after `change`.
ProgramResult compare_changed(const std::function<void(Activation&)>& change,
                              const std::vector<std::string>& more = {}) {
  const TemporaryFolder folder;
  std::vector<Activation> activations = five_tokens();
  write_trace(folder.file("a"), activations);
  for (Activation& activation : activations) change(activation);
  write_trace(folder.file("b"), activations);
  std::vector<std::string> arguments = {"compare", folder.file("a"), folder.file("b")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

TEST(TraceProgram, WritesTheSameWithAndWithoutTheCache) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_trace(folder.file("whole")).code, 0);
  for (const char* cached : {"0", "1", "3", "5"}) {
    ASSERT_EQ(run_trace(folder.file("cut"), {"--cached", cached}).code, 0) << cached;
    EXPECT_EQ(read_file(folder.file("whole")), read_file(folder.file("cut"))) << cached;
  }
}

TEST(TraceProgram, AgreesWithPyTorch) {
  const TemporaryFolder folder;
  const TraceFile oracle(kTracedModel + "/trace.safetensors");
  const StoredTensor& ids = oracle.tensor("ids");
  std::string list;
  for (std::size_t i = 0; i < ids.shape[0]; ++i) {
    std::int64_t id = 0;
    std::memcpy(&id, ids.bytes.data() + i * sizeof id, sizeof id);
    if (i != 0) list += ",";
    list += std::to_string(id);
  }
  const std::string out = folder.file("t");
  ASSERT_EQ(run_program({"trace", "--model", kTracedModel, "--ids", list, "--out", out}).code, 0);
  const ProgramResult found = run_program({"compare", out, kTracedModel + "/trace.safetensors"});
  EXPECT_EQ(found.code, 0) << found.out << found.err;
  EXPECT_TRUE(found.out.starts_with("same: 35 tensors")) << found.out;
}

TEST(TraceProgram, WithoutAFilePrintsALinePerActivation) {
  const ProgramResult all = run_program({"trace", "--model", kTracedModel, "--ids", "1,2"});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(std::count(all.out.begin(), all.out.end(), '\n'), 36);  // a heading, 35 activations
  const ProgramResult one =
      run_program({"trace", "--model", kTracedModel, "--ids", "1,2", "--only", "embedding"});
  EXPECT_EQ(std::count(one.out.begin(), one.out.end(), '\n'), 2) << one.out;
  EXPECT_NE(one.out.find("\nembedding              [2, 24] "), std::string::npos) << one.out;
}

TEST(TraceProgram, WritesOnlyTheActivationsThatAreNamed) {
  const TemporaryFolder folder;
  const std::string out = folder.file("t");
  const ProgramResult result = run_program(
      {"trace", "--model", kTracedModel, "--ids", "1,2", "--only", "residual", "--out", out});
  EXPECT_TRUE(result.out.ends_with(": 4 activations of 2 tokens\n")) << result.out;
  const ProgramResult none =
      run_program({"trace", "--model", kTracedModel, "--ids", "1", "--only", "no_such_name"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.err,
            "stagecraft: --only: expected a part of a name from 'embedding' to 'logits', found "
            "'no_such_name'\n");
}

TEST(TraceProgram, RefusesAWrongCommandLineWithCode2) {
  const TemporaryFolder folder;
  const std::string out = folder.file("t");
  EXPECT_EQ(run_trace(out, {"--cached", "6"}).code, 2);
  EXPECT_EQ(run_trace(out, {"--cached", "-1"}).code, 2);
  EXPECT_EQ(run_trace(out, {"--threads", "0"}).code, 2);
  EXPECT_EQ(run_program({"trace", "--model", kTracedModel, "--out", out}).code, 2);
  for (const char* ids : {"", "1,,2", "1,2,", "a", "1 2", "99999999999", "-1", "1,65"}) {
    const std::string given = std::string("--ids=") + ids;
    EXPECT_EQ(run_program({"trace", "--model", kTracedModel, given, "--out", out}).code, 2) << ids;
  }
}

TEST(TraceProgram, RefusesWrongInputWithCode1AndOneLine) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"trace", "--model", kTracedModel, "--ids", "1", "--out", folder.file("no/such/folder")},
           {"trace", "--model", "/no/such/model", "--ids", "1", "--out", folder.file("t")}}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(result.err.starts_with("stagecraft: ")) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("t")));
}

TEST(TraceProgram, WritesNoFileOfTheModel) {
  const TemporaryFolder folder;
  std::filesystem::copy(kTracedModel, folder.path(), std::filesystem::copy_options::recursive);
  const std::string weights = folder.file("model.safetensors"), old = read_file(weights);
  const ProgramResult result =
      run_program({"trace", "--model", folder.path().string(), "--ids", "1", "--out", weights});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err,
            "stagecraft: " + weights +
                ": expected a file that does not belong to the model, found a file of " +
                folder.path().string() + "\n");
  EXPECT_EQ(read_file(weights), old);
}

TEST(TraceProgram, SaysThatTheModelWasTrainedForFewerTokens) {
  const TinyChatModel model;
  const auto trace_of = [&](std::size_t n) {
    std::string ids = "1";
    for (std::size_t i = 1; i < n; ++i) ids += ",1";
    return run_program({"trace", "--model", model.folder(), "--ids", ids, "--only", "embed"});
  };
  EXPECT_EQ(trace_of(512).err, "");
  const ProgramResult longer = trace_of(513);
  EXPECT_EQ(longer.code, 0);
  EXPECT_TRUE(longer.err.starts_with("note: the model was trained for 512 tokens")) << longer.err;
}

TEST(CompareProgram, SaysSameInOneLine) {
  const ProgramResult found = compare_changed([](Activation&) {});
  EXPECT_EQ(found.code, 0);
  EXPECT_EQ(found.out, "same: 35 tensors, 4375 values; all equal\n");
}

TEST(CompareProgram, NamesTheFirstTensorThatDiffersAndThePlaceByItsMeaning) {
  const ProgramResult found = compare_changed([](Activation& a) {
    if (a.name == "layers.1.attn_probs") {
      a.values.view()(4 * 5 + 3, 2) += 0.25f;  // head 4, query 3, key 2
      a.values.view()(5 * 5 + 4, 0) += 0.5f;
    }
    if (a.name == "logits") a.values.view()(0, 0) += 9.0f;
  });
  EXPECT_EQ(found.code, 1);
  EXPECT_TRUE(found.out.starts_with(
      "layers.1.attn_probs differs first at layer 1, head 4, query 3, key 2\n"))
      << found.out;
  EXPECT_NE(found.out.find("off by 0.25"), std::string::npos) << found.out;
  EXPECT_NE(found.out.find("worst at layer 1, head 5, query 4, key 0\n"), std::string::npos)
      << found.out;
  EXPECT_NE(found.out.find("2 of 150 values differ; the 23 tensors before it agree (of 35)\n"),
            std::string::npos)
      << found.out;
}

TEST(CompareProgram, FindsTheHeadOfAKeyByTheWidthOfAHead) {
  const ProgramResult found = compare_changed([](Activation& a) {
    if (a.name == "layers.0.k_rope") a.values.view()(2, 5) += 1.0f;
  });
  EXPECT_TRUE(found.out.starts_with(
      "layers.0.k_rope differs first at layer 0, head 1, position 2, index 1 of the head\n"))
      << found.out;
}

TEST(CompareProgram, CallsANanOnOneSideDifferentWhateverTheTolerance) {
  const ProgramResult found = compare_changed(
      [](Activation& a) {
        if (a.name == "logits") a.values.view()(4, 64) = std::nanf("");
      },
      {"--rtol", "1e30", "--atol", "1e30"});
  EXPECT_EQ(found.code, 1);
  EXPECT_TRUE(found.out.starts_with("logits differs first at position 4, token 64\n")) << found.out;
  EXPECT_NE(found.out.find("NaN: 0 in A, 1 in B"), std::string::npos) << found.out;
}

TEST(CompareProgram, ObeysTheTolerancesGiven) {
  const auto nudge = [](Activation& a) {
    if (a.name == "logits") a.values.view()(0, 0) += 0.01f;
  };
  EXPECT_EQ(compare_changed(nudge).code, 1);
  EXPECT_EQ(compare_changed(nudge, {"--atol", "0.02"}).code, 0);
  EXPECT_EQ(compare_changed(nudge, {"--atol", "0.02", "--rtol", "0"}).code, 0);
  EXPECT_EQ(compare_changed(nudge, {"--atol", "0", "--rtol", "0"}).code, 1);
}

TEST(CompareProgram, SaysHowManyTensorsOnlyTheSecondTraceHas) {
  const TemporaryFolder folder;
  std::vector<Activation> activations = five_tokens();
  write_trace(folder.file("b"), activations);
  activations.erase(activations.begin() + 3, activations.begin() + 5);
  write_trace(folder.file("a"), activations);
  const ProgramResult result = run_program({"compare", folder.file("a"), folder.file("b")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("; 2 more only in B; all equal\n"), std::string::npos) << result.out;
}

TEST(CompareProgram, AnswersWithCode2IfTheResultCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string good = folder.file("good");
  ASSERT_EQ(run_trace(good).code, 0);
  const ProgramResult result = run_program({"compare", good, good}, "", "", "/dev/full");
  EXPECT_EQ(result.code, 2);  // 1 means "different"
  EXPECT_EQ(result.err, "stagecraft: stdout: cannot be written: No space left on device\n");
}

TEST(CompareProgram, AnswersWhatCannotBeComparedWithCode2) {
  const TemporaryFolder folder;
  const std::string good = folder.file("good");
  ASSERT_EQ(run_trace(good).code, 0);
  std::vector<Activation> activations = five_tokens();
  activations.pop_back();
  const std::string shorter = folder.file("shorter");
  write_trace(shorter, activations);
  const std::string broken = folder.file("broken");
  write_file(broken, "no safetensors file at all");

  const std::vector<std::vector<std::string>> cases = {
      {"", good},
      {good, ""},
      {good, folder.file("absent")},
      {folder.file("absent"), good},
      {good, broken},
      {good, folder.path().string()},               // a folder
      {good, shorter},                              // a tensor is missing in B
      {good, kTracedModel + "/trace.safetensors"},  // seven tokens: other shapes
      {kTracedModel + "/model.safetensors", good},  // its tensors are in no order of computation
      {good, good, "--rtol", "x"},
      {good, good, "--atol", "nan"},
      {good},
  };
  for (std::vector<std::string> arguments : cases) {
    arguments.insert(arguments.begin(), "compare");
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.code, 2) << result.out;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("stagecraft: ")) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }
  EXPECT_EQ(run_program({"compare", "", good}).err, "stagecraft: A: expected a path, found ''\n");
}

}  // namespace
}  // namespace stagecraft
