#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace stagecraft {

struct HttpRequest {
  std::string method;                                        // "POST"
  std::string path;                                          // "/v1/models", without a query
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool is_http_1_0 = false;
  bool keep_alive = true;  // another request may follow on the connection

  // The value of the first header of this name (lower case), "" if there is none.
  std::string_view header(std::string_view name) const;
};

// A request that is refused: the status of the answer, and one line with the reason.
class HttpError : public Error {
 public:
  HttpError(int status, const std::string& message) : Error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

struct HttpLimits {
  std::size_t head_bytes = 16 << 10;  // request line and headers; also the limit of trailers
  std::size_t headers = 100;
  std::size_t body_bytes = 1 << 20;
};

// Parses HTTP/1.1 requests (RFC 9112) from the bytes of one connection, which may be cut anywhere.
// It buffers no more than the limits allow, and reads each byte once.
//
// It is strict, because leniency lets two programs read one text differently: lines end in CRLF, a
// header has no space before its colon and does not continue on the next line, Content-Length
// appears once and not beside Transfer-Encoding.
class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits = {}) : limits_(limits) {}

  // Takes the next bytes. Returns a request if they complete one; call again with no bytes for the
  // request after it. Throws HttpError; the parser must not be used afterwards.
  std::optional<HttpRequest> push(std::string_view bytes);

  // Stores bytes for the next call, while the previous request is being answered.
  void keep(std::string_view bytes) { buffer_ += bytes; }

  // True if a request has begun and is not complete.
  bool in_request() const { return state_ != State::RequestLine || waiting_bytes() > 0; }
  // Received bytes that belong to the next request.
  std::size_t waiting_bytes() const { return buffer_.size() - at_; }
  // True once per request, if the client waits for "100 Continue" before it sends the body.
  bool take_expects_continue() { return std::exchange(expects_continue_, false); }

 private:
  enum class State { RequestLine, Headers, Body, ChunkSize, ChunkData, ChunkEnd, Trailers, Done };

  bool advance();
  void check_begin() const;
  std::optional<std::string> take_line(std::size_t max_bytes, const char* what, int status);
  bool take_body();
  void read_request_line(std::string_view line);
  void read_header(std::string_view line);
  void end_headers();
  void read_chunk_size(std::string_view line);
  std::optional<std::string_view> only_header(std::string_view name) const;

  HttpLimits limits_;
  State state_ = State::RequestLine;
  HttpRequest request_;
  std::string authority_;  // "localhost:8080" of "http://localhost:8080/path"; "" for "/path"
  std::string buffer_;     // received bytes; parsed up to at_
  std::size_t at_ = 0;
  std::size_t searched_ = 0;   // the first bytes from at_ on that contain no line end
  std::size_t head_ = 0;       // bytes of the head so far
  std::size_t body_left_ = 0;  // bytes missing from the body or the chunk
  bool expects_continue_ = false;
};

}  // namespace stagecraft
