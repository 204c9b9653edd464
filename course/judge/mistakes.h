#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// Which mistake of the catalogue (course/mistakes) a student's code makes, judged by what it does:
// each wrong program of the stage is asked the same questions, and its answers are compared with
// the student's, within what a case allows.
//
//   folder  the built programs of one stage; its name is that of the stage's folder in
//           course/mistakes, whose mistakes.json lists them
//   asked   everything the student's code was asked so far
//   first   where those begin that are to be explained; the ones before are evidence too
//   likely  tried first, because it explained what went before; may be empty
//
// A mistake is out if it fails a question to the same function that the student's code passed. Of
// the others that one is named which explains all failures; of several the one that also fits what
// was asked before, of equals the one that mistakes.json lists first. If none explains all, the one
// that explains most, among failures with so many wrong elements that it is no accident: what is
// read beyond an array's end, say, follows no rule. Returns its name (its file's, without .cpp), or
// nothing if none fits.
std::string find_mistake(const std::filesystem::path& folder, std::span<const Asked> asked,
                         std::size_t first, const std::string& likely);

// What to say about it, in the reader's language.
std::string mistake_sentence(const std::filesystem::path& folder, const std::string& name);

}  // namespace stagecraft::stages
