#include "serve/http_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

namespace stagecraft {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::size_t kMaxAhead = 64 << 10;  // bytes that a client may send ahead of an answer
constexpr std::chrono::milliseconds kDrainTime{2000};
constexpr std::size_t kDrainBytes = 16 << 20;
constexpr std::chrono::milliseconds kTick{100};
constexpr std::size_t kSpareFiles = 32;  // file descriptors for everything but connections
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

void prepare(int fd) {  // non-blocking, and closed in child processes
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

int listen_on(const std::string& host, std::uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const auto refuse_host = [&](const char* why) {
    throw Error("host: expected an address of this machine, found '{}': {}", printable(host), why);
  };
  const int failed = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  if (failed != 0) refuse_host(::gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  int problem = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const int fd = ::socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (fd < 0) {
      problem = errno;
      continue;
    }
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(fd, address->ai_addr, address->ai_addrlen) == 0 && ::listen(fd, 128) == 0) {
      prepare(fd);
      return fd;
    }
    problem = errno;
    ::close(fd);
  }
  if (problem == EADDRNOTAVAIL) refuse_host(std::strerror(problem));
  throw Error("port {}: cannot listen on {}: {}", port, printable(host), std::strerror(problem));
}

// The number of connections for which the process may have file descriptors, at most `wanted`.
std::size_t affordable_connections(std::size_t wanted) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const auto files = static_cast<std::size_t>(limit.rlim_cur);
  return std::min(wanted, files > 2 * kSpareFiles ? files - kSpareFiles : kSpareFiles);
}

// A socket is ready for more bytes when a third of its buffer is free. The system's buffer grows to
// megabytes. A slow client that reads all the time would then seem to take nothing for a minute.
constexpr int kSendBuffer = 256 << 10;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// macOS's poll() reports no error of a socket that is asked for nothing.
bool has_failed(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0;
}

}  // namespace

HttpServer::HttpServer(const HttpServerOptions& options, Handler& handler)
    : options_(options), handler_(handler), listener_(listen_on(options.host, options.port)) {
  options_.max_connections = affordable_connections(options.max_connections);
  int ends[2];
  if (::pipe(ends) != 0) {
    ::close(listener_);
    throw Error("serve: cannot make a pipe: {}", std::strerror(errno));
  }
  wake_read_ = ends[0];
  wake_write_ = ends[1];
  prepare(wake_read_);
  prepare(wake_write_);
  port_ = port_of(listener_);
}

HttpServer::~HttpServer() {
  for (const auto& [id, connection] : connections_) ::close(connection.fd);
  ::close(wake_read_);
  ::close(wake_write_);
  if (listener_ >= 0) ::close(listener_);
}

void HttpServer::stop() {
  if (std::exchange(stopping_, true)) return;
  ::close(std::exchange(listener_, -1));
}

void HttpServer::wake() const noexcept {
  const int before = errno;  // a signal handler must not change errno
  [[maybe_unused]] const auto ignored =
      ::write(wake_write_, "", 1);  // pipe full: run() wakes anyway
  errno = before;
}

// Does this work for a connection. If there is no memory for it, the connection is dropped, and the
// others go on.
template <class Work>
void HttpServer::guard_memory(ConnectionId id, Work work) try {
  work();
} catch (const std::bad_alloc&) {
  drop(id);
}

void HttpServer::run(const std::function<bool()>& now) {
  std::vector<pollfd> polled;
  std::vector<ConnectionId> ids;
  while (!now() && !(stopping_ && connections_.empty())) {
    polled.assign({{wake_read_, POLLIN, 0}, {accepts() ? listener_ : -1, POLLIN, 0}});
    ids.clear();
    for (const auto& [id, connection] : connections_) {
      const int out = connection.unsent_bytes() > 0 ? POLLOUT : 0;
      const int in = connection.half_closed && connection.owes() ? 0 : POLLIN;
      polled.push_back({connection.fd, static_cast<short>(in | out), 0});
      ids.push_back(id);
    }
    ::poll(polled.data(), static_cast<nfds_t>(polled.size()), wait_milliseconds());
    char buffer[256];
    while (::read(wake_read_, buffer, sizeof buffer) > 0) {
    }
    for (const ConnectionId id : std::exchange(gone_, {})) handler_.on_gone(id);
    handler_.on_wake();
    for (const ConnectionId id : std::exchange(ready_, {})) {
      if (find(id, Phase::Reading) != nullptr) guard_memory(id, [&] { parse(id, {}); });
    }
    for (std::size_t i = 0; i < ids.size(); ++i) attend(ids[i], polled[i + 2].revents);
    if (polled[1].revents != 0 && !stopping_) accept_all();
    drop_late();
    fill_silence();
    if (stopping_) drop_idle();
  }
}

// happened: what poll() says about this connection.
void HttpServer::attend(ConnectionId id, short happened) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  if (it->second.half_closed && has_failed(it->second.fd)) return drop(id);
  guard_memory(id, [&] {
    if ((happened & POLLOUT) != 0) send_more(id);
    if ((happened & POLLIN) != 0) {
      receive(id);
    } else if ((happened & (POLLHUP | POLLERR)) != 0) {
      drop(id);
    }
  });
}

int HttpServer::wait_milliseconds() const {
  if (!ready_.empty() || !gone_.empty()) return 0;
  return static_cast<int>(kTick.count());
}

void HttpServer::accept_all() {
  while (true) {
    const int fd = ::accept(listener_, nullptr, nullptr);
    if (fd < 0) {
      if (!would_block()) accept_after_ = Clock::now() + kTick;  // no descriptor or memory: later
      return;
    }
    if (connections_.size() >= options_.max_connections && !make_room()) {
      ::close(fd);  // all clients are being served
      continue;
    }
    prepare(fd);
    const int yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
    try {
      Connection connection;
      connection.fd = fd;
      connection.parser = HttpParser(options_.limits);
      wait_for_request(connection);
      connections_.emplace(++last_id_, std::move(connection));
    } catch (const std::bad_alloc&) {
      ::close(fd);
      return;
    }
  }
}

// Closes the connection that has been without a complete request for the longest time. Returns
// false if all connections have one.
bool HttpServer::make_room() {
  auto oldest = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const Phase phase = it->second.phase;
    if (phase != Phase::Reading && phase != Phase::Draining) continue;
    if (oldest == connections_.end() || it->second.since < oldest->second.since) oldest = it;
  }
  if (oldest == connections_.end()) return false;
  drop(oldest->first);
  return true;
}

void HttpServer::wait_for_request(Connection& connection) {
  connection.phase = Phase::Reading;
  connection.in_request = false;
  connection.since = Clock::now();
  connection.deadline = connection.since + options_.idle_time;
}

void HttpServer::receive(ConnectionId id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  char buffer[kReadBytes];
  const ssize_t n = ::recv(it->second.fd, buffer, sizeof buffer, 0);
  if (n < 0 && would_block()) return;
  const bool is_owed = it->second.owes() || std::ranges::count(ready_, id) != 0;
  if (n == 0 && is_owed) return half_close(id);
  if (n <= 0) return drop(id);
  parse(id, std::string_view(buffer, static_cast<std::size_t>(n)));
}

// The client has stopped sending. It may still read its answer (after shutdown(SHUT_WR)), or it may
// be gone (after close()). Only a client that is gone replies to new bytes with a reset. So the
// server sends some: the filler of a stream, or an interim response, which an HTTP/1.1 client skips
// (RFC 9110, 15.2). HTTP/1.0 has none, so such a client counts as gone: it is mostly a proxy whose
// own client has left (nginx).
void HttpServer::half_close(ConnectionId id) {
  Connection& connection = connections_.at(id);
  if (std::exchange(connection.half_closed, true) || connection.phase != Phase::Answering) return;
  if (connection.head_written) return stream(id, connection.filler);
  connection.chunked ? queue(id, kContinue) : drop(id);
}

// Parses requests until one must be answered. Later bytes wait in the parser.
void HttpServer::parse(ConnectionId id, std::string_view bytes) {
  Connection& connection = connections_.at(id);
  if (connection.phase != Phase::Reading) {
    if (connection.close_after) {
      connection.dropped += bytes.size();
      return connection.dropped > kDrainBytes ? drop(id) : void();
    }
    if (connection.parser.waiting_bytes() + bytes.size() > kMaxAhead) return drop(id);
    connection.parser.keep(bytes);
    return;
  }
  std::optional<HttpRequest> request;
  try {
    request = connection.parser.push(bytes);
  } catch (const HttpError& error) {
    return refuse(id, error);
  }
  if (request) {
    if (stopping_) return drop(id);
    connection.phase = Phase::Answering;
    connection.deadline = Clock::time_point::max();
    connection.close_after = !request->keep_alive;
    connection.chunked = !request->is_http_1_0;
    connection.head_written = false;
    connection.filler.clear();
    connection.head_only = request->method == "HEAD";
    return handler_.on_request(id, std::move(*request));
  }
  if (connection.parser.in_request() && !connection.in_request) {
    connection.in_request = true;
    connection.deadline = Clock::now() + options_.request_time;
  }
  if (connection.parser.take_expects_continue()) queue(id, kContinue);
}

void HttpServer::refuse(ConnectionId id, const HttpError& error) {
  Connection& connection = connections_.at(id);
  connection.phase = Phase::Answering;
  connection.close_after = true;
  connection.chunked = connection.head_written = connection.head_only = false;
  answer(id, handler_.refusal(error));
}

HttpServer::Connection* HttpServer::find(ConnectionId id, Phase phase) {
  const auto it = connections_.find(id);
  return it == connections_.end() || it->second.phase != phase ? nullptr : &it->second;
}

void HttpServer::write_head(ConnectionId id, const HttpAnswer& answer, bool has_length) {
  Connection& connection = connections_.at(id);
  connection.head_written = true;
  if (stopping_ || (!has_length && !connection.chunked)) connection.close_after = true;
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", answer.status,
                                 reason(answer.status), answer.content_type);
  if (has_length) {
    head += fmt::format("Content-Length: {}\r\n", answer.body.size());
  } else if (connection.chunked) {
    head += "Transfer-Encoding: chunked\r\n";
  }
  for (const auto& [name, value] : answer.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (connection.close_after) head += "Connection: close\r\n";
  queue(id, head + "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n");
}

void HttpServer::answer(ConnectionId id, HttpAnswer answer) {
  Connection* connection = find(id, Phase::Answering);
  if (connection == nullptr) return;
  if (connection->head_written) return drop(id);  // a stream cannot become another answer
  write_head(id, answer, true);
  connection = find(id, Phase::Answering);
  if (connection == nullptr) return;
  connection->phase = Phase::Closing;
  queue(id, connection->head_only ? std::string_view() : answer.body);
}

void HttpServer::begin_stream(ConnectionId id, const std::string& content_type,
                              std::string filler) {
  Connection* const connection = find(id, Phase::Answering);
  if (connection == nullptr) return;
  connection->filler = std::move(filler);
  // nginx would keep a stream back until it ends.
  write_head(id, {200, content_type, {}, {{"X-Accel-Buffering", "no"}}}, false);
}

void HttpServer::stream(ConnectionId id, std::string_view piece) {
  const Connection* connection = find(id, Phase::Answering);
  if (connection == nullptr || piece.empty()) return;
  if (!connection->chunked) return queue(id, piece);
  queue(id, fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
}

void HttpServer::end_stream(ConnectionId id) {
  const Connection* connection = find(id, Phase::Answering);
  if (connection == nullptr) return;
  if (connection->chunked) queue(id, "0\r\n\r\n");
  end_answer(id);
}

void HttpServer::break_answer(ConnectionId id) { drop(id); }

// The whole answer is queued: waits for the next request, or closes the connection.
void HttpServer::end_answer(ConnectionId id) {
  Connection* connection = find(id, Phase::Answering);
  if (connection == nullptr) return;
  connection->phase = Phase::Closing;
  send_more(id);
}

// Drops the clients with the most waiting bytes until the others are within the limit. The largest
// complete answer is not counted: it may be larger than the limit, and was in memory before it came
// here.
void HttpServer::keep_to_limit() {
  if (unsent_bytes_ <= options_.max_unsent_bytes) return;
  ConnectionId exempt = 0;  // no connection has this id
  std::size_t exempt_bytes = 0;
  for (const auto& [id, connection] : connections_) {
    if (connection.phase != Phase::Closing || connection.unsent_bytes() <= exempt_bytes) continue;
    exempt = id;
    exempt_bytes = connection.unsent_bytes();
  }
  while (unsent_bytes_ - exempt_bytes > options_.max_unsent_bytes) {
    const auto most = std::ranges::max_element(connections_, {}, [&](const auto& entry) {
      return entry.first == exempt ? 0 : entry.second.unsent_bytes();
    });
    drop(most->first);
  }
}

// The client has this long to read something of an answer. (While a request is read, its own
// deadline holds, also if "100 Continue" is sent.)
void HttpServer::wait_for_client(Connection& connection) const {
  if (connection.phase != Phase::Reading) connection.deadline = Clock::now() + options_.send_time;
}

// Sends as many bytes as the client accepts now; the rest waits.
void HttpServer::queue(ConnectionId id, std::string_view bytes) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  Connection& connection = it->second;
  if (connection.unsent_bytes() == 0) wait_for_client(connection);
  if (connection.phase == Phase::Answering) connection.since = Clock::now();
  connection.unsent += bytes;
  unsent_bytes_ += bytes.size();
  send_more(id);
  keep_to_limit();
}

void HttpServer::send_more(ConnectionId id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  Connection& connection = it->second;
  while (connection.unsent_bytes() > 0) {
    const ssize_t n = ::send(connection.fd, connection.unsent.data() + connection.sent,
                             connection.unsent_bytes(), 0);
    if (n < 0 && would_block()) break;
    if (n <= 0) return drop(id);
    connection.sent += static_cast<std::size_t>(n);
    unsent_bytes_ -= static_cast<std::size_t>(n);
    wait_for_client(connection);
  }
  // Not after each token, to avoid a copy; but sent bytes must not be more than half of the buffer.
  if (connection.sent > connection.unsent.size() / 2) {
    connection.unsent.erase(0, connection.sent);
    connection.unsent.shrink_to_fit();
    connection.sent = 0;
  }
  if (connection.unsent_bytes() > 0) return;
  if (connection.phase == Phase::Answering) connection.deadline = Clock::time_point::max();
  if (connection.phase != Phase::Closing) return;
  if (!connection.close_after) {
    wait_for_request(connection);
    if (connection.parser.waiting_bytes() > 0) ready_.push_back(id);
    return;
  }
  // If the connection were closed at once, a client that is still sending would see a reset, and
  // not the answer.
  ::shutdown(connection.fd, SHUT_WR);
  connection.phase = Phase::Draining;
  connection.since = Clock::now();
  connection.deadline = connection.since + kDrainTime;
}

void HttpServer::drop(ConnectionId id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  const bool owed = it->second.phase == Phase::Answering;
  unsent_bytes_ -= it->second.unsent_bytes();
  ::close(it->second.fd);
  connections_.erase(it);
  if (owed) gone_.push_back(id);
}

void HttpServer::drop_late() {
  const auto now = Clock::now();
  std::vector<ConnectionId> late;
  for (const auto& [id, connection] : connections_) {
    if (connection.deadline <= now) late.push_back(id);
  }
  for (const ConnectionId id : late) drop(id);
}

void HttpServer::fill_silence() {
  const auto last = Clock::now() - options_.filler_time;
  std::vector<ConnectionId> silent;
  for (const auto& [id, connection] : connections_) {
    const bool streams = connection.phase == Phase::Answering && connection.head_written;
    if (streams && connection.since <= last) silent.push_back(id);
  }
  for (const ConnectionId id : silent) {
    guard_memory(id, [&] {
      const Connection* connection = find(id, Phase::Answering);
      if (connection != nullptr) stream(id, connection->filler);
    });
  }
}

void HttpServer::drop_idle() {
  std::vector<ConnectionId> idle;
  for (const auto& [id, connection] : connections_) {
    if (connection.phase == Phase::Reading) idle.push_back(id);
  }
  for (const ConnectionId id : idle) drop(id);
}

}  // namespace stagecraft
