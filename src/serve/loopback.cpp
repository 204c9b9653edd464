#include "serve/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/ascii.h"

namespace stagecraft {

bool is_loopback(const std::string& host) {
  if (ascii_lower(host) == "localhost") return true;
  in6_addr v6 = {};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
  // inet_aton also reads short addresses (127.1), as getaddrinfo does, but ignores what follows a
  // blank.
  in_addr v4 = {};
  return host.find_first_not_of("0123456789.") == std::string::npos &&
         ::inet_aton(host.c_str(), &v4) != 0 && ntohl(v4.s_addr) >> 24 == 127;
}

}  // namespace stagecraft
