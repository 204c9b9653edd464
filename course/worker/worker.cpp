// The judged: one program a stage, linked with the student's files for that stage and ours for the
// others. Reads a request, calls the function, writes what came out. It knows no right answer.
//
//   worker REQUEST RESPONSE
#include <cstdio>

#include "base/error.h"
#include "base/not_implemented.h"
#include "course/worker/calls.h"

namespace stagecraft::stages {
namespace {

Response answer(const Request& request) {
  const Call call = find_call(request.function);
  Response response;
  for (std::size_t n = 1; n <= request.calls; ++n) {
    Arguments args(request);
    try {
      call(args);
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
  // What student code prints is to be read also where it crashes or hangs next.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  using namespace stagecraft::stages;
  answer(Request::read(argv[1])).write(argv[2]);
  return 0;
}
