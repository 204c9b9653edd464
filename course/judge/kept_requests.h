#pragma once

#include <filesystem>
#include <string>

#include "course/judge/question.h"

namespace stagecraft::stages {

// If STAGE_KEEP names a folder, all requests are kept there, so that a worker can be started on one
// of them again, for example in a debugger. If it is not set, the first two functions do nothing.

// Writes the request of a case, before it is asked. number: of the questions that were asked
// before. The file's name is made of this number, the running test and the case; it is returned
// (empty if nothing was written). The folder's file `names` gets a line with the case's name in
// words.
std::string keep_request(const Case& question, std::size_t number);

// Adds a line to the folder's file `failed`: how the case failed ("crashed", "hung", "exited",
// "no_answer", "overrun", "threw", "refusal" or "wrong"), the suite, and the name of the request.
// "threw": what it threw is no Error. is_about_an_error: it threw an Error, or accepted what it
// must refuse with one.
void keep_failure(const std::string& name, const Outcome& outcome, bool is_about_an_error);

// A folder of this name for files that a request refers to (those of a model). It is deleted when
// the gate ends, unless requests are kept. It is empty at the first call.
std::filesystem::path folder_for_files(const std::string& name);

}  // namespace stagecraft::stages
