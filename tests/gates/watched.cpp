#include "tests/gates/watched.h"

#include <charconv>
#include <sstream>

namespace stagecraft::stages {
namespace {

constexpr std::uint64_t kSectorBytes = 32;
constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // sums of these do not overflow

std::vector<std::string> fields_of(const std::string& record) {
  std::vector<std::string> fields;
  std::istringstream in(record);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  fields.resize(std::max<std::size_t>(fields.size(), 9));
  return fields;
}

std::uint64_t number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::min(value, kMost) : 0;
}

}  // namespace

Watched::Watched(const Response& response, const std::string& output) {
  const auto found = response.outputs.find(output);
  if (found == response.outputs.end()) return;
  std::istringstream in(text_of_bytes(found->second.values));
  for (std::string record; std::getline(in, record);) {
    const auto fields = fields_of(record);
    if (fields[0] == "finding") {
      findings.push_back({fields[1], fields[2], fields[3]});
    } else if (fields[0] == "launch") {
      distinct_bytes += number(fields[6]);
    } else if (fields[0] == "line") {
      lines.push_back({fields[1], fields[2] == "shared", number(fields[4]), number(fields[5]),
                       number(fields[6]), number(fields[7])});
    }
  }
}

std::uint64_t Watched::bytes_in_sectors() const {
  std::uint64_t sectors = 0;
  for (const Line& line : lines) sectors += line.is_shared ? 0 : line.sectors;
  return kSectorBytes * sectors;
}

std::uint64_t Watched::conflicts() const {
  std::uint64_t conflicts = 0;
  for (const Line& line : lines) conflicts += line.conflicts;
  return conflicts;
}

std::uint64_t Watched::shared_requests() const {
  std::uint64_t requests = 0;
  for (const Line& line : lines) requests += line.is_shared ? line.requests : 0;
  return requests;
}

}  // namespace stagecraft::stages
