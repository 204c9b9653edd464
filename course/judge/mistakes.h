#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// A known mistake of the catalogue (course/mistakes) that a student's code makes, judged by what it
// does: each wrong program of the stage is asked what the student's code was asked.
struct KnownMistake {
  std::string name;        // its file's, without .cpp
  std::size_t reproduced;  // failing cases in which the student's answer is this program's
  std::size_t failed;      // failing cases
  std::string shown;       // the name of the first case that is reproduced
};

// The questions of one suite: asked[first] to asked[last - 1].
struct Suite {
  std::string name;
  std::size_t first = 0;
  std::size_t last = 0;
};

// How the known mistakes answer what the judged program was asked: each time they are asked anew.
class KnownMistakes {
 public:
  virtual ~KnownMistakes() = default;
  // Is it known, without asking, that this mistake is wrong where the judged program is right?
  virtual bool is_ruled_out(const std::filesystem::path&, std::span<const Asked>) const {
    return false;
  }
  // A right answer?
  virtual bool is_right(const std::filesystem::path& mistake, const Asked& one) const;
  // The judged program's own wrong answer?
  virtual bool reproduces(const std::filesystem::path& mistake, const Asked& failed) const;
};

// A program and everything that it was asked.
struct Judged {
  std::filesystem::path program;
  std::span<const Asked> asked;
};

// Names the mistake that explains what is wrong in a suite, or none. folder: the built programs of
// one stage; its name is that of the stage's folder in course/mistakes, whose mistakes.json lists
// them.
//
// A mistake is eligible if it is right wherever the student's code is right, in any suite, and
// reproduces at least half of the failing cases of this suite: what explains fewer is often a side
// of another mistake. One of them must show at least 8 wrong elements that tell what was computed
// (count_telling). Of tokens, error messages and writes to a wrong place two cases are needed: one
// may be an accident. Where the only evidence is that both programs were stopped by a trap, all
// failing cases of all suites must be explained: a trap hides the number. If no mistake is
// eligible, only the functions that fail are compared: our functions call each other, so a mistake
// in one spoils others, but the student's functions need not do so. The mistake that reproduces
// most is named. If two reproduce the same, fresh cases decide (referee.h); if that stays open,
// none is named. The named one must also answer fresh cases as the student's code does, as far as
// it explains them.
std::optional<KnownMistake> find_mistake(const std::filesystem::path& folder, const Judged& judged,
                                         const Suite& suite, const KnownMistakes& mistakes = {});

// Do two programs answer the same? Numbers may differ by what the case allows. Of a case that is
// computed in steps, the first step that is wrong counts: the later ones follow from it. A crash is
// the same if the signal is, an error if it names the same.
bool alike(const Case& question, const Outcome& one, const Outcome& other);

// What to say about it, in the reader's language.
std::string mistake_sentence(const std::filesystem::path& folder, const KnownMistake& mistake);

}  // namespace stagecraft::stages
