// Checks each row of the tables of bad models beside this file: the library and the program must
// refuse the model in one line, for the right reason.
#include "tests/hostile/refused_model.h"

#include <unistd.h>

#include "base/error.h"
#include "tests/hostile/run_limited.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"

namespace stagecraft {
namespace {

// The message of the Error that opening throws; "" if the model opens.
std::string refusal(const TinyModel& model) {
  return without_folder(error_of([&] { textbook_engine(model.folder()); }), model);
}

LimitedRun story(const TinyModel& model) {
  return run_limited({"story", "--model", model.folder().string(), "--ids", "1,2,3", "--print-ids",
                      "--max-tokens", "2", "--temperature", "0", "--threads", "1"});
}

TEST(TinyModel, RunsBeforeItIsBroken) {
  for (const char* name : {"llama-gqa2", "llama-sharded"}) {
    const TinyModel model(name);
    EXPECT_EQ(refusal(model), "");
    const LimitedRun run = story(model);
    EXPECT_EQ(run.code, 0) << run.ended_by;
    EXPECT_EQ(run.err, "");
    EXPECT_NE(run.out, "");
  }
}

TEST_P(RefusedModel, InOneLineThatSaysWhatIsWrong) {
  if (GetParam().name.ends_with("may_not_be_read") && ::geteuid() == 0) {
    GTEST_SKIP() << "root may read everything";
  }
  TinyModel model;
  GetParam().how(model);
  EXPECT_EQ(refusal(model), GetParam().message);
  const LimitedRun run = story(model);
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_EQ(without_folder(run.err, model), "stagecraft: " + GetParam().message + "\n");
  EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace stagecraft
