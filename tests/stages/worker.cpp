// The judged: one program a stage, linked with the student's files for that stage and ours for the
// others. Reads a request, calls the function, writes what came out. It knows no right answer.
//
//   worker REQUEST RESPONSE
#include <cstdio>
#include <functional>

#include "base/error.h"
#include "base/not_implemented.h"
#include "operators/add.h"
#include "operators/matmul_transb.h"
#include "operators/rms_norm.h"
#include "operators/silu.h"
#include "operators/swiglu.h"
#include "tests/stages/arguments.h"

namespace stagecraft::stages {
namespace {

void call_add(Arguments& args) {
  const auto x = args.matrix("x");
  add(x, args.in_out("y"));
}

void call_silu(Arguments& args) {
  const auto x = args.vector("x");
  silu(x, args.out_vector("y", x.size()));
}

void call_swiglu(Arguments& args) {
  const auto gate = args.vector("gate");
  const auto up = args.vector("up");
  swiglu(gate, up, args.out_vector("y", gate.size()));
}

void call_rms_norm(Arguments& args) {
  const auto x = args.matrix("x");
  const auto weight = args.vector("weight");
  rms_norm(x, weight, static_cast<float>(args.scalar("eps")),
           args.out_matrix("y", x.rows(), x.cols()));
}

void call_matmul_transb(Arguments& args) {
  const auto a = args.matrix("a");
  const auto b = args.matrix("b");
  matmul_transb(static_cast<float>(args.scalar("alpha")), a, b,
                static_cast<float>(args.scalar("beta")), args.in_out("c"));
}

const std::map<std::string, std::function<void(Arguments&)>>& calls() {
  static const std::map<std::string, std::function<void(Arguments&)>> table = {
      {"add", call_add},
      {"silu", call_silu},
      {"swiglu", call_swiglu},
      {"rms_norm", call_rms_norm},
      {"matmul_transb", call_matmul_transb},
  };
  return table;
}

Response answer(const Request& request) {
  const auto call = calls().find(request.function);
  if (call == calls().end()) throw Error("request: no function '{}'", request.function);
  Response response;
  for (std::size_t n = 1; n <= request.calls; ++n) {
    Arguments args(request);
    try {
      call->second(args);
    } catch (const NotImplemented& unwritten) {
      response.status = Response::Status::NotWritten;
      response.message = unwritten.what();
      return response;
    } catch (const std::exception& error) {
      response.status = Response::Status::Threw;
      response.message = error.what();
      return response;
    } catch (...) {
      response.status = Response::Status::Threw;
      response.message = "something that is no std::exception";
      return response;
    }
    args.collect(n == 1 ? "" : fmt::format("#{}", n), response);
  }
  return response;
}

}  // namespace
}  // namespace stagecraft::stages

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: worker REQUEST RESPONSE\n", stderr);
    return 2;
  }
  using namespace stagecraft::stages;
  answer(Request::read(argv[1])).write(argv[2]);
  return 0;
}
