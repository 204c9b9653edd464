#pragma once

#include <filesystem>
#include <string>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// Where STAGE_KEEP names a folder, everything that is asked stays there, so that a worker can be
// started on it again, in a debugger say. Elsewhere these do nothing.

// Writes the request of a case, before it is asked; its name is made of the running test and the
// case. Returns that, or nothing. The folder's `names` gets a line with the case's name in words.
std::string keep_request(const Case& question);

// Adds a line to the folder's `failed`: how it failed ("crashed", "hung", "exited", "no_answer",
// "overrun" or "wrong"), the suite and the request's name.
void keep_failure(const std::string& name, const Outcome& outcome);

// A folder of that name for files that a request is about (a model's), there until the gate ends
// or, where requests are kept, as long as they are. Empty when it is first asked for.
std::filesystem::path folder_for_files(const std::string& name);

}  // namespace stagecraft::stages
