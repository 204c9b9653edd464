#include "serve/http_parser.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/number.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxChunkLine = 256;
constexpr std::string_view kScheme = "http://";

bool is_token_character(char c) {  // RFC 9110, 5.6.2
  if (is_ascii_digit(c) || is_ascii_letter(c)) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

// Is `word` an element of the list "a, b, c"? Case does not matter.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (ascii_lower(trimmed(list.substr(0, end))) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

[[noreturn]] void refuse(int status, const std::string& message) {
  throw HttpError(status, "request: " + message);
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::optional<HttpRequest> HttpParser::push(std::string_view bytes) {
  buffer_.erase(0, at_);
  at_ = 0;
  buffer_ += bytes;
  while (state_ != State::Done) {
    if (!advance()) return std::nullopt;
  }
  state_ = State::RequestLine;
  head_ = 0;
  expects_continue_ = false;
  return std::exchange(request_, {});
}

// Does one step. Returns false if it needs more bytes.
bool HttpParser::advance() {
  if (state_ == State::Body || state_ == State::ChunkData) return take_body();
  if (state_ == State::ChunkSize || state_ == State::ChunkEnd) {
    const auto line = take_line(kMaxChunkLine, "a chunk's size", 400);
    if (!line) return false;
    if (state_ == State::ChunkSize) {
      read_chunk_size(*line);
    } else if (!line->empty()) {
      refuse(400, "chunk: expected its end after the bytes of its size, found more bytes");
    } else {
      state_ = State::ChunkSize;
    }
    return true;
  }
  if (state_ == State::RequestLine) check_begin();
  const auto line = take_line(limits_.head_bytes - head_, "request line and headers", 431);
  if (!line) return false;
  head_ += line->size() + 2;
  if (state_ == State::RequestLine) {
    if (!line->empty()) read_request_line(*line);  // empty lines before a request are allowed
  } else if (state_ == State::Headers) {
    line->empty() ? end_headers() : read_header(*line);
  } else if (line->empty()) {  // trailers are read and dropped
    state_ = State::Done;
  }
  return true;
}

// Refuses TLS (https://) at its first byte. It may send no newline, and then waits for an answer.
void HttpParser::check_begin() const {
  const std::string_view first = std::string_view(buffer_).substr(at_, 1);
  if (first.empty() || is_token(first) || first == "\r" || first == "\n") return;
  refuse(400, fmt::format("expected METHOD PATH HTTP/1.1, found '{}'", printable(first)));
}

// Returns the next line without its CRLF, or nullopt if it is not complete.
std::optional<std::string> HttpParser::take_line(std::size_t max_bytes, const char* what,
                                                 int status) {
  const std::size_t end = buffer_.find('\n', at_ + searched_);
  const std::size_t size = (end == std::string::npos ? buffer_.size() : end + 1) - at_;
  if (size > max_bytes) {
    const std::size_t limit = status == 431 ? limits_.head_bytes : max_bytes;
    refuse(status, fmt::format("{}: expected at most {} bytes, found more", what, limit));
  }
  if (end == std::string::npos) {
    searched_ = size;
    return std::nullopt;
  }
  if (end == at_ || buffer_[end - 1] != '\r') {
    refuse(400, "expected lines that end in CR LF, found a bare LF");
  }
  std::string line = buffer_.substr(at_, end - 1 - at_);
  at_ = end + 1;
  searched_ = 0;
  return line;
}

bool HttpParser::take_body() {
  const std::size_t n = std::min(body_left_, waiting_bytes());
  request_.body.append(buffer_, at_, n);
  at_ += n;
  body_left_ -= n;
  if (body_left_ > 0) return false;
  state_ = state_ == State::Body ? State::Done : State::ChunkEnd;
  return true;
}

void HttpParser::read_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    refuse(400, fmt::format("expected METHOD PATH HTTP/1.1, found '{}'", printable(line)));
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method))
    refuse(400, fmt::format("method: expected GET, HEAD or POST, found '{}'", printable(method)));
  const auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
  std::string_view path = target;
  authority_.clear();
  const bool names_host = ascii_lower(target.substr(0, kScheme.size())) == kScheme;
  if (names_host) {  // RFC 9112, 3.2.2
    path.remove_prefix(kScheme.size());
    authority_ = path.substr(0, path.find_first_of("/?"));
    path.remove_prefix(authority_.size());
  }
  const bool is_good = names_host ? !authority_.empty() && authority_.find('@') == std::string::npos
                                  : path.starts_with('/');
  if (!is_good || !std::ranges::all_of(target, is_visible)) {
    refuse(400, fmt::format("path: expected a path that begins with / or http://HOST/, found '{}'",
                            printable(target)));
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const int status = version.starts_with("HTTP/") ? 505 : 400;
    refuse(status, fmt::format("version: expected HTTP/1.1, found '{}'", printable(version)));
  }
  request_.method = method;
  request_.path = path.substr(0, path.find('?'));
  if (request_.path.empty()) request_.path = "/";
  request_.is_http_1_0 = version == "HTTP/1.0";
  state_ = State::Headers;
}

void HttpParser::read_header(std::string_view line) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  if (colon == line.size() || !is_token(name)) {
    refuse(400, fmt::format("header: expected NAME: VALUE, found '{}'", printable(line)));
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  };
  if (std::ranges::any_of(value, is_control)) {
    refuse(400, fmt::format("header {}: expected text without control characters, found one",
                            printable(name)));
  }
  if (request_.headers.size() == limits_.headers) {
    refuse(431, fmt::format("headers: expected at most {}, found more", limits_.headers));
  }
  request_.headers.emplace_back(ascii_lower(name), value);
}

// The value of a header that may appear only once.
std::optional<std::string_view> HttpParser::only_header(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : request_.headers) {
    if (key != name) continue;
    if (found) refuse(400, fmt::format("header {}: is given twice", name));
    found = value;
  }
  return found;
}

void HttpParser::end_headers() {
  if (!only_header("host") && !request_.is_http_1_0)
    refuse(400, "header host: expected the name of a host, found none");
  if (!authority_.empty()) {  // it replaces the header
    std::erase_if(request_.headers, [](const auto& header) { return header.first == "host"; });
    request_.headers.emplace_back("host", authority_);
  }
  only_header("authorization");
  only_header("content-type");
  request_.keep_alive = !request_.is_http_1_0 && !lists(request_.header("connection"), "close");
  const auto length = only_header("content-length");
  const auto encoding = only_header("transfer-encoding");
  if (encoding) {
    if (length || request_.is_http_1_0) {
      refuse(400,
             fmt::format(
                 "header transfer-encoding: expected HTTP/1.1 without content-length, found {}",
                 length ? "content-length" : "HTTP/1.0"));
    }
    if (ascii_lower(*encoding) != "chunked") {
      refuse(501, fmt::format("header transfer-encoding: expected chunked, found '{}'",
                              printable(*encoding)));
    }
    state_ = State::ChunkSize;
  } else {
    const std::string_view digits = length.value_or("0");
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
      refuse(400, fmt::format("header content-length: expected a number, found '{}'",
                              printable(digits)));
    }
    const auto bytes = integer_of<std::size_t>(digits, 10);  // nullopt if too large for size_t
    if (!bytes || *bytes > limits_.body_bytes) {
      refuse(413, fmt::format("body: expected at most {} bytes, found {}", limits_.body_bytes,
                              printable(digits)));
    }
    body_left_ = *bytes;
    state_ = body_left_ == 0 ? State::Done : State::Body;
  }
  if (const auto expected = only_header("expect")) {
    if (ascii_lower(*expected) != "100-continue") {
      refuse(417,
             fmt::format("header expect: expected 100-continue, found '{}'", printable(*expected)));
    }
    expects_continue_ = state_ != State::Done && !request_.is_http_1_0;
  }
}

void HttpParser::read_chunk_size(std::string_view line) {
  const std::string_view digits = trimmed(line.substr(0, line.find(';')));
  const auto size = integer_of<std::size_t>(digits, 16);
  if (!size)
    refuse(400,
           fmt::format("chunk: expected its size in hexadecimal, found '{}'", printable(line)));
  if (*size > limits_.body_bytes - request_.body.size()) {
    refuse(413, fmt::format("body: expected at most {} bytes, found more", limits_.body_bytes));
  }
  body_left_ = *size;
  state_ = *size == 0 ? State::Trailers : State::ChunkData;
}

}  // namespace stagecraft
