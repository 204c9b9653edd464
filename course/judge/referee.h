#pragma once

#include <filesystem>
#include <string>

#include "course/judge/question.h"

namespace stagecraft::stages {

// With STAGE_REFEREE set, a gate does not judge. It only makes its cases, and
//
//   STAGE_REFEREE    a worker. Empty: no worker is asked (do the generators show what they must?)
//   STAGE_REFEREE_B  another one. If the two answer differently, the judged one (STAGE_WORKER) is
//                    asked, too; this stops after STAGE_MOST_CASES differences (16)
//   STAGE_SCORE      names a file for the Score
//
// With --gtest_repeat, each round has new cases.
bool is_referee();
void referee(const Case& question, const FindProblem& find_problem);

struct Score {
  std::size_t cases = 0;   // that were made
  std::size_t differ = 0;  // in which A and B gave different answers
  std::size_t first = 0;   // of these: the judged program answered as A
  std::size_t second = 0;  // the judged program answered as B
  struct Line {
    std::string question;  // the case's name
    bool same;             // did A and B give the same answer?
  };
  std::vector<Line> lines = {};

  void write() const;  // to STAGE_SCORE
  static Score read(const std::filesystem::path& path);
};
const Score& score();

// Starts this gate again as another process. It makes fresh cases of a suite in `rounds` rounds and
// compares the two rivals; where they differ, it compares the judged program with both. Large cases
// and cases with simultaneous calls are left out.
void set_own_program(const std::string& path);
struct Rivals {
  std::filesystem::path first;
  std::filesystem::path second;
};
Score fresh_cases(const std::filesystem::path& judged, const Rivals& rivals,
                  const std::string& suite, std::size_t rounds);

}  // namespace stagecraft::stages
