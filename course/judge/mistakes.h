#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "course/judge/question.h"

namespace stagecraft::stages {

// A known mistake of the catalogue (course/mistakes) that a student's code makes. It is found by
// behaviour: each wrong program of the stage is asked the questions that the student's code was
// asked.
struct KnownMistake {
  std::string name;        // the name of its file, without .cpp
  std::size_t reproduced;  // failing cases in which the student's answer equals this program's
  std::size_t failed;      // failing cases
  std::string shown;       // the first case that is reproduced
};

// The questions of one suite: asked[first] to asked[last - 1].
struct Suite {
  std::string name;
  std::size_t first = 0;
  std::size_t last = 0;
};

// The answers of the known mistakes to the questions that the judged program was asked. This class
// asks the mistakes each time.
class KnownMistakes {
 public:
  virtual ~KnownMistakes() = default;
  // True if it is known, without asking, that this mistake is wrong where the judged program is
  // right.
  virtual bool is_ruled_out(const std::filesystem::path&, std::span<const Asked>) const {
    return false;
  }
  // True if the mistake's answer is right.
  virtual bool is_right(const std::filesystem::path& mistake, const Asked& one) const;
  // True if the mistake's answer equals the wrong answer of the judged program.
  virtual bool reproduces(const std::filesystem::path& mistake, const Asked& failed) const;
};

// A program and all questions that it was asked.
struct Judged {
  std::filesystem::path program;
  std::span<const Asked> asked;
};

// Finds the mistake that explains the failures of a suite, or returns nullopt. folder: the built
// programs of one stage; its name is that of the stage's folder in course/mistakes, whose
// mistakes.json lists them.
//
// A mistake is eligible if it is right wherever the student's code is right, in any suite, and
// reproduces at least half of the failing cases of this suite. A program that explains fewer cases
// often shows only a side effect of another mistake. At least one case must have 8 wrong elements
// that show what was computed (count_telling). Tokens, error messages and writes to a wrong place
// need two cases: one may be an accident. If the only evidence is that a trap stopped both
// programs, all failing cases of all suites must be explained: a trap hides the number.
//
// If no mistake is eligible, only the functions that fail are compared. Reason: our functions call
// each other, so a mistake in one spoils others, but the student's functions need not do so. The
// mistake that reproduces the most cases is named. If two reproduce the same cases, fresh cases
// decide (referee.h); if these do not decide, no mistake is named. The named mistake must also
// answer fresh cases as the student's code does, as far as it explains them.
std::optional<KnownMistake> find_mistake(const std::filesystem::path& folder, const Judged& judged,
                                         const Suite& suite, const KnownMistakes& mistakes = {});

// The sentence about a mistake, in the reader's language.
std::string mistake_sentence(const std::filesystem::path& folder, const KnownMistake& mistake);

}  // namespace stagecraft::stages
