#include "text/grammar/json_format.h"

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr std::string_view kDate =
    R"((\d{4}-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)|)"
    R"((\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29))";
constexpr std::string_view kTime =
    R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";
constexpr std::string_view kUuid =
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
constexpr std::string_view kHostLabel = "[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?";
// The lengths of a whole address and of a whole host name are not limited.
constexpr std::string_view kMailAtom = R"([0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+)";
constexpr std::string_view kIpv4 =
    R"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3})";

// RFC 4291, by the grammar of RFC 3986.
std::string ipv6() {
  const std::string h = "[0-9a-fA-F]{1,4}";
  const std::string last = fmt::format("({}:{}|{})", h, h, kIpv4);  // the last 32 bits
  std::string ways = fmt::format("({}:){{6}}{}", h, last);
  for (int before = 0; before <= 7; ++before) {  // at most so many groups stand before "::"
    const std::string begin =
        before == 0 ? "" : fmt::format("(({}:){{0,{}}}{})?", h, before - 1, h);
    const std::string end = before < 6    ? fmt::format("({}:){{{}}}{}", h, 5 - before, last)
                            : before == 6 ? h
                                          : "";
    ways += fmt::format("|{}::{}", begin, end);
  }
  return "(" + ways + ")";
}

// RFC 3339, appendix A: units may be left out at either end, but not in between.
std::string duration() {
  const std::string n = R"(\d{1,9})";
  const std::string minutes = fmt::format("{0}M({0}S)?", n), days = fmt::format("{0}M({0}D)?", n);
  const std::string time = fmt::format("T({0}H({1})?|{1}|{0}S)", n, minutes);
  const std::string date = fmt::format("({0}Y({1})?|{1}|{0}D)", n, days);
  return fmt::format("P({}W|{}({})?|{})", n, date, time, time);
}

}  // namespace

std::string json_format_pattern(std::string_view format) {
  if (format == "date") return std::string(kDate);
  if (format == "time") return std::string(kTime);
  if (format == "date-time") return fmt::format("{}T{}", kDate, kTime);
  if (format == "uuid") return std::string(kUuid);
  if (format == "ipv4") return std::string(kIpv4);
  if (format == "ipv6") return ipv6();
  if (format == "duration") return duration();
  if (format == "hostname") return fmt::format(R"({0}(\.{0})*)", kHostLabel);
  if (format == "email") {
    return fmt::format(R"({0}(\.{0})*@{1}(\.{1})+)", kMailAtom, kHostLabel);
  }
  return "";
}

}  // namespace stagecraft
