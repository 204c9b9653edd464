#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "serve/http_parser.h"

namespace stagecraft {

using ConnectionId = std::uint64_t;  // never used for two connections

struct HttpAnswer {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // further headers
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";     // an address or a name
  std::uint16_t port = 0;             // 0: the system chooses a free port
  std::size_t max_connections = 128;  // further clients are not answered
  // Of answers, for all clients together, besides the largest one that is complete.
  std::size_t max_unsent_bytes = 64 << 20;
  std::chrono::milliseconds idle_time{60'000};  // how long a connection may wait between requests
  std::chrono::milliseconds request_time{20'000};  // from the first byte of a request to its last
  std::chrono::milliseconds send_time{20'000};  // how long a client may take no byte of its answer
  // After this time without a piece of a stream, its filler is sent. (nginx closes a connection
  // that is silent for 60 seconds.)
  std::chrono::milliseconds filler_time{15'000};
  HttpLimits limits;
};

// HTTP/1.1 over TCP: one thread and one poll() for all connections, no thread per client. What a
// client can make the server store is bounded: connections, bytes of a request, unsent bytes of
// answers, and the time for each of these. A full server closes the connection that has been idle
// longest.
//
// cpp-httplib (0.11.4 in Debian 12) is not used: it collects a header line without a bound, queues
// accepted connections without a bound, and eight slow clients occupy its eight threads.
class HttpServer {
 public:
  // run() calls these functions on its own thread.
  struct Handler {
    virtual ~Handler() = default;
    // A complete request. The handler must call answer() or begin_stream(), now or later.
    virtual void on_request(ConnectionId connection, HttpRequest request) = 0;
    // Returns the answer to a request that is not HTTP or too large. The connection is closed after
    // it.
    virtual HttpAnswer refusal(const HttpError& error) = 0;
    // The client closed the connection before its answer was complete. Never called from inside the
    // functions below.
    virtual void on_gone(ConnectionId connection) = 0;
    // Called after wake(), and about ten times per second.
    virtual void on_wake() = 0;
  };

  // Listens from now on. Throws Error if it cannot listen. The process must ignore SIGPIPE.
  HttpServer(const HttpServerOptions& options, Handler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const { return port_; }

  // Serves until stop() was called and every answer has been sent, or until `now` becomes true.
  void run(const std::function<bool()>& now);
  // From now on, takes no new request; new clients are refused, because nothing listens any more.
  // May be called only on the thread of run().
  void stop();
  // Makes run() call on_wake() soon. Any thread or signal handler may call it.
  void wake() const noexcept;

  // Answer the request of a connection: answer(); or begin_stream(), any number of stream(), and
  // end_stream(). break_answer() ends either. They do nothing if the connection is gone.
  void answer(ConnectionId connection, HttpAnswer answer);
  // filler: a piece that the client skips, such as a comment. It shows proxies that the server is
  // still there, and shows the server whether the client is.
  void begin_stream(ConnectionId connection, const std::string& content_type, std::string filler);
  void stream(ConnectionId connection, std::string_view piece);
  void end_stream(ConnectionId connection);
  // Closes the connection, so that the client sees that the answer is incomplete.
  void break_answer(ConnectionId connection);

  std::size_t n_connections() const { return connections_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase {
    Reading,    // reads a request, or waits for one
    Answering,  // the handler has not completed the answer
    Closing,    // the answer is complete, its last bytes are being sent
    Draining,   // all is sent; received bytes are dropped, so that the client can read the answer
  };
  struct Connection {
    int fd = -1;
    Phase phase = Phase::Reading;
    HttpParser parser;
    std::string unsent;
    std::size_t sent = 0;        // bytes of `unsent` that were sent
    std::size_t dropped = 0;     // bytes after the last request, never parsed
    Clock::time_point deadline;  // end of the phase; never, while the handler works
    Clock::time_point since;     // start of the idle time; of a stream, when it last got bytes
    std::string filler;          // of a stream that has begun
    bool in_request = false;
    bool chunked = false;
    bool head_only = false;
    bool close_after = false;
    bool head_written = false;  // of the current answer
    bool half_closed = false;   // the client sends no more; it may still receive
    std::size_t unsent_bytes() const { return unsent.size() - sent; }
    bool owes() const { return phase == Phase::Answering || phase == Phase::Closing; }
  };
  using Connections = std::map<ConnectionId, Connection>;

  void accept_all();
  bool make_room();
  template <class Work>
  void guard_memory(ConnectionId id, Work work);
  void attend(ConnectionId id, short happened);
  void receive(ConnectionId id);
  void half_close(ConnectionId id);
  void parse(ConnectionId id, std::string_view bytes);
  void refuse(ConnectionId id, const HttpError& error);
  void send_more(ConnectionId id);
  void queue(ConnectionId id, std::string_view bytes);
  void keep_to_limit();
  void write_head(ConnectionId id, const HttpAnswer& answer, bool has_length);
  void end_answer(ConnectionId id);
  void wait_for_request(Connection& connection);
  void wait_for_client(Connection& connection) const;
  void drop(ConnectionId id);
  void drop_late();
  void fill_silence();
  void drop_idle();
  Connection* find(ConnectionId id, Phase phase);
  int wait_milliseconds() const;
  bool accepts() const { return !stopping_ && Clock::now() >= accept_after_; }

  HttpServerOptions options_;
  Handler& handler_;
  int listener_ = -1;  // closed by stop()
  int wake_read_ = -1, wake_write_ = -1;
  std::uint16_t port_ = 0;
  ConnectionId last_id_ = 0;
  Connections connections_;
  std::size_t unsent_bytes_ = 0;     // of all connections
  std::vector<ConnectionId> ready_;  // connections whose next request has already been received
  std::vector<ConnectionId> gone_;   // connections to report to on_gone()
  Clock::time_point accept_after_;
  bool stopping_ = false;
};

}  // namespace stagecraft
