#include "base/quoted_names.h"

namespace stagecraft {

std::string rename_quoted(std::string_view message, std::string_view where,
                          const std::function<std::string(const std::string&)>& rename) {
  std::size_t at = message.starts_with(where) ? where.size() : 0;
  std::string renamed(message.substr(0, at));
  while (at < message.size()) {
    const std::size_t open = message.find('\'', at);
    const std::size_t close = open == message.npos ? open : message.find('\'', open + 1);
    if (close == message.npos) break;
    renamed += message.substr(at, open + 1 - at);
    renamed += rename(std::string(message.substr(open + 1, close - open - 1))) + "'";
    at = close + 1;
  }
  renamed += message.substr(at);
  return renamed;
}

}  // namespace stagecraft
