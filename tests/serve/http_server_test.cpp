#include "serve/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

// Answers "/large" with kLarge bytes, "/soon" at the first wake after 200 ms, "/later" never,
// "/stream" with a part of a stream, "/silent" with the head of a stream, and everything else with
// two bytes. "/stop" stops the server first.
struct Echo : HttpServer::Handler {
  void on_request(ConnectionId connection, HttpRequest request) override {
    if (request.path == "/later") return;
    if (request.path == "/soon") {
      soon.emplace_back(connection, std::chrono::steady_clock::now() + 200ms);
      return;
    }
    if (request.path == "/stream") {
      server->begin_stream(connection, "text/plain", "");
      server->stream(connection, std::string(kPart, 'k'));
      ++answered;
      return;
    }
    if (request.path == "/silent") return server->begin_stream(connection, "text/plain", "filler");
    if (request.path == "/stop") server->stop();
    const bool large = request.path == "/large";
    server->answer(connection, {200, "text/plain", std::string(large ? kLarge : 2, 'k'), {}});
    ++answered;
  }
  HttpAnswer refusal(const HttpError& error) override {
    return {error.status(), "text/plain", error.what(), {}};
  }
  void on_gone(ConnectionId) override { ++gone; }
  void on_wake() override {
    while (!soon.empty() && soon.front().second <= std::chrono::steady_clock::now()) {
      server->answer(soon.front().first, {200, "text/plain", "soon", {}});
      soon.erase(soon.begin());
    }
  }

  static constexpr std::size_t kLarge = 30 << 20, kPart = 20 << 20;
  HttpServer* server = nullptr;
  std::vector<std::pair<ConnectionId, std::chrono::steady_clock::time_point>> soon;
  std::atomic<int> answered = 0;  // at once
  std::atomic<int> gone = 0;
};

class Client {
 public:
  explicit Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  bool connected() const { return connected_; }
  Client& operator=(const Client&) = delete;

  Client& send(std::string_view text) {
    EXPECT_TRUE(try_to_send(text));
    return *this;
  }
  bool try_to_send(std::string_view text) {
    return ::send(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  }
  Client& get(const std::string& path) {
    return send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  Client& send_no_more() {
    EXPECT_EQ(::shutdown(fd_, SHUT_WR), 0);
    return *this;
  }
  // Reads until the server closes the connection, at most `most` bytes.
  std::string read(std::size_t most = SIZE_MAX) {
    std::string all;
    char buffer[4096];
    while (all.size() < most) {
      const ssize_t n = ::recv(fd_, buffer, std::min(sizeof buffer, most - all.size()), 0);
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return all + "[silence]";
      if (n <= 0) break;
      all.append(buffer, static_cast<std::size_t>(n));
    }
    return all;
  }

 private:
  int fd_;
  bool connected_ = false;
};

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    std::signal(SIGPIPE, SIG_IGN);
    options_.max_connections = 5;
    options_.max_unsent_bytes = 25 << 20;
    options_.idle_time = options_.request_time = options_.send_time = 60s;
  }
  ~HttpServerTest() override {
    end_ = true;
    if (server_) server_->wake();
    if (thread_.joinable()) thread_.join();
  }
  Client client() {
    if (!server_) {
      server_.emplace(options_, echo_);
      echo_.server = &*server_;
      thread_ = std::thread([this] { server_->run([this] { return end_.load(); }); });
    }
    return Client(server_->port());
  }
  // Waits until the count is n; false if that takes longer than ten seconds.
  static bool becomes(const std::atomic<int>& count, int n) {
    for (int i = 0; i < 1000 && count != n; ++i) std::this_thread::sleep_for(10ms);
    return count == n;
  }

  HttpServerOptions options_;
  Echo echo_;
  std::optional<HttpServer> server_;
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

TEST_F(HttpServerTest, ClosesAConnectionThatIsIdleForTooLong) {
  options_.idle_time = 300ms;
  EXPECT_TRUE(client().get("/a").read().ends_with("\r\n\r\nkk"));
  EXPECT_EQ(client().read(), "");
}

TEST_F(HttpServerTest, ClosesAConnectionWhoseRequestComesTooSlowly) {
  options_.request_time = 300ms;
  Client slow = client();
  slow.send("GET / HTTP/1.1\r\nHost:");
  // More bytes do not give it more time: the server closes long before the last of them.
  std::atomic<bool> closed = false;
  bool sent_all = false;
  std::thread drip([&] {
    for (int i = 0; i < 400 && !closed; ++i) {
      std::this_thread::sleep_for(20ms);
      slow.try_to_send("x");
    }
    sent_all = !closed;
  });
  EXPECT_EQ(slow.read(), "");
  closed = true;
  drip.join();
  EXPECT_FALSE(sent_all);
}

TEST_F(HttpServerTest, ABodyThatMayComeMustComeInTime) {
  options_.request_time = 300ms;
  Client slow = client();
  const auto begin = std::chrono::steady_clock::now();
  slow.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(slow.read(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, options_.send_time);
}

TEST_F(HttpServerTest, DropsAClientThatReadsNothingOfItsAnswer) {
  options_.send_time = 300ms;
  Client silent = client();
  silent.get("/large").read(1000);  // the head and some of the body
  std::this_thread::sleep_for(800ms);
  EXPECT_LT(silent.read().size(), Echo::kLarge);
  EXPECT_GT(client().get("/large").read(Echo::kLarge).size(), Echo::kLarge - 1);
}

TEST_F(HttpServerTest, HoldsNoMoreUnreadBytesThanItMay) {
  Client first = client(), second = client();
  first.get("/large");
  second.get("/large");
  EXPECT_TRUE(becomes(echo_.answered, 2));
  const std::string one = first.read(Echo::kLarge), other = second.read(Echo::kLarge);
  // Each answer exceeds the limit, but one may wait: the other client was dropped.
  EXPECT_NE(one.size() == Echo::kLarge, other.size() == Echo::kLarge);
}

TEST_F(HttpServerTest, KeepsTheLargestCompleteAnswerWhenOthersExceedTheLimit) {
  options_.max_unsent_bytes = 10 << 20;
  Client complete = client(), part = client();
  complete.get("/large");
  EXPECT_TRUE(becomes(echo_.answered, 1));
  part.get("/stream");
  EXPECT_TRUE(becomes(echo_.gone, 1));
  EXPECT_LT(part.read().size(), Echo::kPart);
  EXPECT_GE(complete.read(Echo::kLarge).size(), Echo::kLarge);
}

TEST_F(HttpServerTest, MakesRoomForANewClientByClosingTheOldestIdleOne) {
  std::vector<std::unique_ptr<Client>> half;
  client();
  for (int i = 0; i < 20; ++i) {
    half.push_back(std::make_unique<Client>(server_->port()));
    half.back()->send("GET / HT");
  }
  EXPECT_TRUE(client().get("/a").read(15).starts_with("HTTP/1.1 200 OK"));
  EXPECT_EQ(half.front()->read(), "");
}

TEST_F(HttpServerTest, StopsAtOnceThoughClientsAreIdleAndFinishesAnswers) {
  Client idle = client(), half = client(), served = client();
  idle.get("/a");
  EXPECT_TRUE(becomes(echo_.answered, 1));
  half.send("GET / HT");
  served.get("/soon");
  EXPECT_TRUE(client().get("/stop").read().ends_with("\r\n\r\nkk"));
  EXPECT_TRUE(idle.read().ends_with("\r\n\r\nkk"));  // then it is closed
  EXPECT_EQ(half.read(), "");
  EXPECT_TRUE(served.read().ends_with("\r\n\r\nsoon"));
  thread_.join();
}

TEST_F(HttpServerTest, RefusesNewClientsAsSoonAsItStops) {
  Client served = client();
  served.get("/later");  // its answer is owed, so run() goes on
  EXPECT_TRUE(client().get("/stop").read().ends_with("\r\n\r\nkk"));
  EXPECT_FALSE(client().connected());
}

TEST_F(HttpServerTest, ClosesANewClientWhereAllOthersAreBeingServed) {
  std::vector<std::unique_ptr<Client>> busy;
  client();
  for (int i = 0; i < 5; ++i) {
    busy.push_back(std::make_unique<Client>(server_->port()));
    busy.back()->get("/later");
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(client().read(), "");
  busy.clear();
  EXPECT_TRUE(becomes(echo_.gone, 5));
  EXPECT_TRUE(client().get("/a").read(15).starts_with("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, TellsOfAClientThatHasGone) {
  client().get("/later");
  EXPECT_TRUE(becomes(echo_.gone, 1));
  // A client that keeps sending while it waits for its answer is dropped.
  Client talker = client();
  talker.get("/later").send(std::string(200 << 10, 'x'));
  EXPECT_EQ(talker.read(), "");
  EXPECT_TRUE(becomes(echo_.gone, 2));
}

TEST_F(HttpServerTest, AnswersAClientThatSendsNoMore) {
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
  const std::string one = client().get("/soon").send_no_more().read();
  EXPECT_TRUE(one.starts_with(interim + "HTTP/1.1 200 OK\r\n") && one.ends_with("\r\n\r\nsoon"))
      << one;
  // It gets the answers to all requests that it has sent, even if an answer is not sent at once.
  const std::string all = client().get("/soon").get("/large").get("/soon").send_no_more().read();
  EXPECT_TRUE(all.ends_with("\r\n\r\nsoon"));
  EXPECT_GT(all.size(), Echo::kLarge);
  std::string requests;
  for (int i = 0; i < 20; ++i) requests += "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const int before = echo_.answered;
  client().send(requests).send_no_more().read();
  EXPECT_EQ(echo_.answered - before, 20);
  EXPECT_EQ(client().send("GET / HTTP/1.1\r\nHo").send_no_more().read(), "");
  EXPECT_EQ(echo_.gone, 0);
  // HTTP/1.0 has no interim responses, which would show whether the client is still there.
  const std::string at_once = client().send("GET / HTTP/1.0\r\n\r\n").send_no_more().read();
  EXPECT_TRUE(at_once.starts_with("HTTP/1.1 200 OK\r\n")) << at_once;
  EXPECT_EQ(client().send("GET /soon HTTP/1.0\r\n\r\n").send_no_more().read(), "");
  EXPECT_TRUE(becomes(echo_.gone, 1));
}

TEST_F(HttpServerTest, LearnsWhetherTheClientOfASilentStreamIsThere) {
  { client().get("/silent").read(15); }  // this client leaves before the first piece
  EXPECT_TRUE(becomes(echo_.gone, 1));
  Client waiting = client();
  std::string all = waiting.get("/silent").send_no_more().read(1);
  while (!all.ends_with("\r\n6\r\nfiller\r\n") && !all.ends_with("]")) all += waiting.read(1);
  EXPECT_FALSE(all.ends_with("[silence]")) << all;
  EXPECT_EQ(echo_.gone, 1);
}

TEST_F(HttpServerTest, FillsTheSilenceOfAStream) {
  options_.filler_time = 100ms;
  const std::string all = client().get("/silent").read(300);
  EXPECT_NE(all.find("6\r\nfiller\r\n6\r\nfiller\r\n"), std::string::npos) << all;
  EXPECT_TRUE(client().get("/soon").read(15).starts_with("HTTP/1.1 200 OK"));  // has no filler
}

TEST_F(HttpServerTest, AClientThatIsRefusedSeesWhy) {
  Client large = client();
  large.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n");
  large.send(std::string(100 << 10, 'x'));  // it goes on sending
  EXPECT_TRUE(large.read().starts_with("HTTP/1.1 413 Content Too Large\r\n"));
  EXPECT_TRUE(client().send("nonsense\r\n\r\n").read().starts_with("HTTP/1.1 400 Bad Request\r\n"));
  // The request before it does not matter: an answer to HEAD has no body, but a refusal has one.
  const std::string both =
      client().send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n").read();
  EXPECT_EQ(both.find("HTTP/1.1 200 OK\r\n"), 0u) << both;
  EXPECT_NE(both.find("HTTP/1.1 400 Bad Request\r\n"), std::string::npos) << both;
  EXPECT_FALSE(both.ends_with("\r\n\r\n")) << both;
}

}  // namespace
}  // namespace stagecraft
