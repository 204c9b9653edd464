#pragma once

#include <filesystem>
#include <string>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// A gate need not judge: with STAGE_REFEREE it only makes its cases, and
//
//   STAGE_REFEREE=""      asks nobody (do the generators show what they must?)
//   STAGE_REFEREE="A:B"   asks these two workers, and where their answers differ the judged one
//                         (STAGE_WORKER), until they have differed STAGE_MOST_CASES times (16)
//   STAGE_SCORE           names a file for the Score
//
// With --gtest_repeat each round's cases are new.
bool is_referee();
void referee(const Case& question, const FindProblem& find_problem);

struct Score {
  std::size_t cases = 0;   // that were made
  std::size_t differ = 0;  // in which the two gave different answers
  std::size_t first = 0;   // of those: answered as the first does
  std::size_t second = 0;  // as the second does
  struct Line {
    std::string question;  // the case's name
    bool same;             // did the two give one answer?
  };
  std::vector<Line> lines = {};

  void write() const;  // to STAGE_SCORE
  static Score read(const std::filesystem::path& path);
};
const Score& score();

// Lets another process of this gate make fresh cases of a suite, in so many rounds, and compare two
// programs by them, and where they differ the judged one with both. Calls at once are no such case,
// nor are large ones.
void set_own_program(const std::string& path);
struct Rivals {
  std::filesystem::path first;
  std::filesystem::path second;
};
Score fresh_cases(const std::filesystem::path& judged, const Rivals& rivals,
                  const std::string& suite, std::size_t rounds);

}  // namespace stagecraft::stages
