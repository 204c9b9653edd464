#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace stagecraft::stages {

// A variable of the environment (STAGE_...); empty if it is not set.
std::string setting(const char* name);

// The same for a whole number; nullopt if it is not set. Throws Error, naming the variable, if it
// is something else.
std::optional<std::uint64_t> number_setting(const char* name);

// The worker that is judged (STAGE_WORKER).
std::filesystem::path worker();

}  // namespace stagecraft::stages
