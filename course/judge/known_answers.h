#pragma once

#include <filesystem>

#include "course/judge/known_worker.h"

namespace stagecraft::stages {

// Asks a program of the catalogue, which is ours and needs no walls (known_worker.h).
Outcome ask_ours(const std::filesystem::path& program, const WrittenRequest& request);

// Asks the program that is judged. One that lies in the folder STAGE_OURS, by which the catalogue
// is tested, needs no walls.
Outcome ask_judged(const Request& request, std::size_t most = kMostNumbers);

// Asks a known mistake, which always answers alike, or the judged program itself. Where
// STAGE_ANSWERS names a folder, what a mistake answers to the same numbers, texts and model files
// is remembered there, for this process and for others. Whoever sets it empties it when the
// programs change.
Outcome ask_known(const std::filesystem::path& program, const Request& request);

}  // namespace stagecraft::stages
