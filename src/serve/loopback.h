#pragma once

#include <string>

namespace stagecraft {

// True if `host`, a name or an address without brackets, always means this machine: localhost (in
// any case), an address of 127.0.0.0/8, or ::1. "127.evil.example" is a name like any other.
bool is_loopback(const std::string& host);

// True if `host` stands for all addresses of this machine: "*", 0.0.0.0 or ::, in any spelling. No
// browser can open it.
bool is_any_address(const std::string& host);

}  // namespace stagecraft
