#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/api_request.h"

namespace stagecraft {

// POST /v1/responses is OpenAI's newer format for chats. The request is rewritten as a chat
// completion, and the answer is written in the newer format (response_writer.h). The server stores
// nothing between requests.

// parse_response throws ApiError, which names a field as this request names it.
struct ResponseRequest {
  CompletionRequest completion;
  std::string echo;  // a JSON object: the fields of the request that the answer repeats
};
ResponseRequest parse_response(std::string_view body, const ServedModel& model,
                               std::uint64_t random_seed);

}  // namespace stagecraft
