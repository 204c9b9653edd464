#include "serve/http_parser.h"

#include <gtest/gtest.h>

#include <random>

namespace stagecraft {
namespace {

using Requests = std::vector<HttpRequest>;

// Parses all requests in `text`, cut into pieces at these offsets.
Requests read(std::string_view text, const std::vector<std::size_t>& cuts = {},
              const HttpLimits& limits = {}) {
  HttpParser parser(limits);
  Requests requests;
  const auto push = [&](std::string_view bytes) {
    for (auto request = parser.push(bytes); request; request = parser.push({})) {
      requests.push_back(std::move(*request));
    }
  };
  std::size_t at = 0;
  for (const std::size_t cut : cuts) {
    push(text.substr(at, cut - at));
    at = cut;
  }
  push(text.substr(at));
  return requests;
}

int status_of(std::string_view text, const HttpLimits& limits = {}) {
  try {
    return read(text, {}, limits).empty() ? 0 : 200;
  } catch (const HttpError& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    return error.status();
  }
}

// Two requests: one body with Content-Length, one in chunks.
constexpr std::string_view kTwo =
    "POST /v1/a?b=c HTTP/1.1\r\nHost: x\r\nContent-Type:  text/plain \r\nContent-Length: 5\r\n\r\n"
    "hello"
    "POST /chunks HTTP/1.1\r\nhost:y\r\nTransfer-Encoding: Chunked\r\nConnection: TE, Close\r\n\r\n"
    "3;name=value\r\nabc\r\n0A\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";

void expect_both(const Requests& requests, const std::string& where) {
  ASSERT_EQ(requests.size(), 2u) << where;
  EXPECT_EQ(requests[0].method, "POST") << where;
  EXPECT_EQ(requests[0].path, "/v1/a") << where;
  EXPECT_EQ(requests[0].header("content-type"), "text/plain") << where;
  EXPECT_EQ(requests[0].header("no-such"), "") << where;
  EXPECT_EQ(requests[0].body, "hello") << where;
  EXPECT_TRUE(requests[0].keep_alive) << where;
  EXPECT_EQ(requests[1].body, "abc0123456789") << where;
  EXPECT_FALSE(requests[1].keep_alive) << where;
}

TEST(HttpParser, ReadsRequestsHoweverTheyAreCut) {
  std::vector<std::size_t> everywhere;
  for (std::size_t i = 1; i < kTwo.size(); ++i) {
    everywhere.push_back(i);
    expect_both(read(kTwo, {i}), fmt::format("cut at {}", i));
  }
  expect_both(read(kTwo, everywhere), "byte by byte");
}

TEST(HttpParser, CountsTheHeadersOfEachRequestAnew) {
  const std::string one = "GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n";
  std::string many;
  for (int i = 0; i < 10; ++i) many += one;
  EXPECT_EQ(read(many, {}, {.head_bytes = one.size(), .headers = 2}).size(), 10u);
}

// Two of them could mean one thing here and another to a program in between.
TEST(HttpParser, RefusesAHeaderThatDecidesSomethingTwice) {
  for (const std::string name : {"Host", "Authorization", "Content-Type"}) {
    const std::string host = name == "Host" ? "" : "Host: x\r\n", one = name + ": x\r\n";
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + host + one + "\r\n"), 200) << name;
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + host + one + one + "\r\n"), 400) << name;
  }
}

TEST(HttpParser, TellsOnlyAClientThatHasABodyToGoOn) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n";
  HttpParser with_body{HttpLimits()}, without{HttpLimits()};
  EXPECT_FALSE(with_body.push(head + "Content-Length: 1\r\n\r\n"));
  EXPECT_TRUE(with_body.take_expects_continue());
  EXPECT_FALSE(with_body.take_expects_continue());
  EXPECT_TRUE(without.push(head + "\r\n"));
  EXPECT_FALSE(without.take_expects_continue());
}

TEST(HttpParser, TakesTheHostOfATargetThatNamesOne) {
  for (const auto& [target, path] :
       std::vector<std::pair<std::string, std::string>>{{"http://local:8091/a/b?c=/d", "/a/b"},
                                                        {"HTTP://local:8091?c", "/"},
                                                        {"http://local:8091", "/"}}) {
    const Requests requests = read("GET " + target +
                                   " HTTP/1.1\r\nHost: x\r\n\r\n"
                                   "GET /next HTTP/1.1\r\nHost: y\r\n\r\n");
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(requests[0].path, path);
    EXPECT_EQ(requests[0].header("host"), "local:8091");
    EXPECT_EQ(requests[1].header("host"), "y");
  }
}

TEST(HttpParser, RefusesWithAStatus) {
  const std::string host = "Host: x\r\n";
  const std::vector<std::pair<std::string, int>> cases = {
      {"GET / HTTP/1.1\r\n" + host + "\r\n", 200},
      {"\r\n\r\nGET / HTTP/1.1\r\n" + host + "\r\n", 200},
      {"GET / HTTP/1.0\r\n\r\n", 200},
      {"GET / HTTP/1.1\r\n\r\n", 400},  // no Host
      {"GET / HTTP/1.1\r\n" + host + host + "\r\n", 400},
      {"GET / HTTP/1.1\n" + host + "\r\n", 400},
      {"GET /\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET http://x/ HTTP/1.1\r\n" + host + "\r\n", 200},
      {"GET http:///a HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET http://user@x/ HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET http://x/ HTTP/1.1\r\n\r\n", 400},
      {"GET ftp://x/ HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET x HTTP/1.1\r\n" + host + "\r\n", 400},
      {"G(T / HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET /\x80 HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET / HTTP/2.0\r\n" + host + "\r\n", 505},
      {"GET / SPDY\r\n" + host + "\r\n", 400},
      {"\x16\x03\x01\x02", 400},  // a client that speaks TLS, and waits for an answer
      {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + " folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + "A: b\rc\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: +1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 1, 1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: \r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 1048577\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999999\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0x1\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n100001\r\n", 413},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
       413},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
       400},
      {"POST / HTTP/1.1\r\n" + host + "Expect: a miracle\r\nContent-Length: 1\r\n\r\n", 417},
  };
  for (const auto& [text, status] : cases) EXPECT_EQ(status_of(text), status) << text;
}

TEST(HttpParser, KeepsNoMoreThanTheLimits) {
  const HttpLimits limits = {.head_bytes = 100, .headers = 3, .body_bytes = 10};
  EXPECT_EQ(status_of(std::string(101, 'x'), limits), 431);  // a line that does not end
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + std::string(80, 'x') + "\r\n", limits), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA:\r\nB:\r\nC:\r\nD:\r\n", limits), 431);
  std::string empty_lines;
  for (int i = 0; i < 60; ++i) empty_lines += "\r\n";
  EXPECT_EQ(status_of(empty_lines, limits), 431);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(chunked + "6\r\n123456\r\n5\r\n12345\r\n", limits), 413);
  EXPECT_EQ(status_of(chunked + "1;" + std::string(300, 'x'), limits), 400);
  EXPECT_EQ(status_of(chunked + "0\r\nA: " + std::string(100, 'x'), limits), 431);
}

TEST(HttpParser, SaysOnceThatAClientWaitsToSendItsBody) {
  HttpParser parser;
  EXPECT_FALSE(
      parser.push("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2"
                  "\r\n\r\n"));
  EXPECT_TRUE(parser.take_expects_continue());
  EXPECT_FALSE(parser.take_expects_continue());
  EXPECT_TRUE(parser.in_request());
  EXPECT_TRUE(parser.push("ab"));
  EXPECT_FALSE(parser.in_request());
}

TEST(HttpParser, AnswersOrRefusesMutatedRequestsTheSameHoweverTheyAreCut) {
  std::mt19937 random(11);
  for (int i = 0; i < 5'000; ++i) {
    std::string text(kTwo);
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
        default:
          text.insert(at, 1, "\r\n:; 0"[random() % 6]);
          break;
      }
      if (text.empty()) text = "x";
    }
    std::vector<std::size_t> cuts;
    for (std::size_t at = random() % 40; at < text.size(); at += 1 + random() % 40) {
      cuts.push_back(at);
    }
    const auto outcome = [&](const std::vector<std::size_t>& places) -> std::string {
      std::string said;
      try {
        for (const HttpRequest& request : read(text, places)) {
          said += fmt::format("{} {} {} {};", request.method, request.path, request.headers.size(),
                              request.body);
        }
      } catch (const HttpError& error) {
        return fmt::format("{}", error.status());
      }
      return said;
    };
    EXPECT_EQ(outcome({}), outcome(cuts)) << text;
  }
}

}  // namespace
}  // namespace stagecraft
