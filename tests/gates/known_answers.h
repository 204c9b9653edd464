#pragma once

#include <filesystem>

#include "tests/gates/worker_process.h"

namespace stagecraft::stages {

// Asks a program of the catalogue without walls, which costs a tenth of what they cost
// (known_worker.h).
Outcome ask_ours(const std::filesystem::path& program, const Request& request);

// Asks a known mistake, which always answers alike, or the judged program itself. Where
// STAGE_ANSWERS names a folder, what a mistake answers to the same numbers, texts and model files
// is remembered there, for this process and for others. Whoever sets it empties it when the
// programs change.
Outcome ask_known(const std::filesystem::path& program, const Request& request);

}  // namespace stagecraft::stages
