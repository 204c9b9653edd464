#include "serve/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <optional>

#include "base/ascii.h"

namespace stagecraft {
namespace {

// The IPv4 address, in the host's byte order; nullopt if `host` is none. inet_aton also reads short
// addresses (127.1), as getaddrinfo does, but ignores what follows a blank.
std::optional<std::uint32_t> ipv4_address(const std::string& host) {
  in_addr v4 = {};
  const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
  if (!is_number || ::inet_aton(host.c_str(), &v4) == 0) return std::nullopt;
  return ntohl(v4.s_addr);
}

}  // namespace

bool is_loopback(const std::string& host) {
  if (ascii_lower(host) == "localhost") return true;
  in6_addr v6 = {};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
  const std::optional<std::uint32_t> v4 = ipv4_address(host);
  return v4 && *v4 >> 24 == 127;
}

bool is_any_address(const std::string& host) {
  if (host == "*") return true;
  in6_addr v6 = {};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_UNSPECIFIED(&v6) != 0;
  return ipv4_address(host) == 0u;
}

}  // namespace stagecraft
