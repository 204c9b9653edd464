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
  bool keep_alive = true;  // may another request follow on the connection?

  // The value of the first header of this name (lower case), "" if there is none.
  std::string_view header(std::string_view name) const;
};

// A request that is refused: the status of the answer, and one line that says why.
class HttpError : public Error {
 public:
  HttpError(int status, const std::string& message) : Error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// The text with its ASCII letters in lower case. Header names, host names, media types and
// authentication schemes are case-insensitive.
std::string lower(std::string_view text);
// The text without the blanks and tabs around it.
std::string_view trimmed(std::string_view text);

struct HttpLimits {
  std::size_t head_bytes = 16 << 10;  // request line and headers together; trailers too
  std::size_t headers = 100;
  std::size_t body_bytes = 1 << 20;
};

// HTTP/1.1 requests (RFC 9112) from the bytes of one connection, however they are cut. It keeps no
// more than the limits allow, and looks at each byte once.
//
// Strict where leniency lets two programs read one text differently: lines end in CRLF, a header
// has no space before its colon and is not continued on the next line, Content-Length appears once
// and not beside Transfer-Encoding.
class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits = {}) : limits_(limits) {}

  // Takes the next bytes. Returns the request that they complete, if they do; call again with no
  // bytes for the one after it. Throws HttpError; the connection is of no use afterwards.
  std::optional<HttpRequest> push(std::string_view bytes);

  // Takes bytes for the next call, when nobody can answer another request yet.
  void keep(std::string_view bytes) { buffer_ += bytes; }

  // Has a request begun that is not complete?
  bool in_request() const { return state_ != State::RequestLine || waiting_bytes() > 0; }
  // Received bytes that belong to the next request.
  std::size_t waiting_bytes() const { return buffer_.size() - at_; }
  // True once per request whose client waits for "100 Continue" before it sends the body.
  bool take_expects_continue() { return std::exchange(expects_continue_, false); }

 private:
  enum class State { RequestLine, Headers, Body, ChunkSize, ChunkData, ChunkEnd, Trailers, Done };

  bool advance();
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
  std::string buffer_;     // received; read up to at_
  std::size_t at_ = 0;
  std::size_t searched_ = 0;   // this many bytes from at_ on hold no end of line
  std::size_t head_ = 0;       // bytes of the head so far
  std::size_t body_left_ = 0;  // of the body or the chunk
  bool expects_continue_ = false;
};

}  // namespace stagecraft
