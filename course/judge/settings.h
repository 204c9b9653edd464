#pragma once

#include <filesystem>
#include <string>

namespace stagecraft::stages {

// A variable of the environment (STAGE_...); empty if it is not set.
std::string setting(const char* name);

// The worker that is judged (STAGE_WORKER).
std::filesystem::path worker();

}  // namespace stagecraft::stages
