// CUDA's functions for numbers, warps and the host must give the values of CUDA's manual. main returns how many give
// another value, and prints their lines. The checker must find nothing.
#include <string>

#include "host.h"

#define EXPECT(condition) \
  if (!(condition)) lines[atomicAdd(count, 1) % 64] = __LINE__

__global__ void numbers_of_threads(int* count, int* lines, float f, int i, unsigned u, long long ll) {
  // f = -2.5, i = -7, u = 0xf0000001, ll = -3
  double d = f;
  EXPECT(abs(i) == 7 && abs(f) == 2.5f && abs(d) == 2.5 && fabsf(f) == 2.5f && llabs(ll) == 3);
  EXPECT(isnan(f - NAN) && !isnan(f) && isinf(-INFINITY) && !isinf(d) && isfinite(f) && signbit(f));
  EXPECT(min(i, 3) == -7 && max(i, u) == 0xfffffff9u && min(u, i) == 0xf0000001u && min(f, d - 1) == -3.5);
  EXPECT(min(ll, 4ll) == -3 && max(ll, 5ull) == 0xfffffffffffffffdull && max(1.0f, f) == 1 && max(f, NAN) == -2.5f);
  EXPECT(umin(u, 3u) == 3 && umax(u, 3u) == u && llmax(ll, 2ll) == 2);
  EXPECT(__popc(u) == 5 && __popcll(~0ull) == 64 && __clz(1) == 31 && __clz(0) == 32 && __clz(-1) == 0);
  EXPECT(__clzll(1) == 63 && __clzll(0) == 64 && __ffs(0) == 0 && __ffs(8) == 4 && __ffsll(1ll << 40) == 41);
  EXPECT(__brev(1) == 0x80000000u && __brev(0x12345678) == 0x1e6a2c48 && __brevll(1) == 1ull << 63);
  EXPECT(__byte_perm(0x33221100, 0x77665544, 0x7531) == 0x77553311 && __byte_perm(0x80, 0, 0x0008) == 0x808080ff);
  EXPECT(__funnelshift_l(0x80000000u, 1, 4) == 0x18 && __funnelshift_r(0x80000000u, 1, 4) == 0x18000000);
  EXPECT(__mul24(i, 3) == -21 && __umul24(0x1000002u, 3) == 6 && __mulhi(i, 1 << 30) == -2);
  EXPECT(__umulhi(u, 16) == 15 && __mul64hi(ll, 1ll << 62) == -1 && __umul64hi(1ull << 63, 6) == 3);
  EXPECT(__sad(i, 3, 100u) == 110 && __usad(3u, 10u, 1u) == 8);
  EXPECT(__dp4a(0x01ff0203, 0x02030405, 1) == 1 + 15 + 8 - 3 + 2 && __dp4a(0xffu, 2u, 1u) == 511);
  EXPECT(__vadd4(0x01ff0203, 0x02030405) == 0x03020608 && __vsub4(0x01000000, 0x00010000) == 0x01ff0000);
  EXPECT(__vaddss4(0x7f800000, 0x01ff0000) == 0x7f800000 && __vmaxs4(0x80, 0x7f) == 0x7f);
  EXPECT(__vmaxu4(0x80, 0x7f) == 0x80 && __vabsdiffu4(0x0305, 0x0503) == 0x0202 &&
         __vcmpeq4(0x0102, 0x0103) == 0xffffff00);
  EXPECT(__float_as_int(1.0f) == 0x3f800000 && __int_as_float(0x40000000) == 2 && __float_as_uint(f) == 0xc0200000u);
  EXPECT(__double_as_longlong(1.0) == 0x3ff0000000000000ll && __longlong_as_double(0x4000000000000000ll) == 2);
  EXPECT(__double2hiint(1.0) == 0x3ff00000 && __double2loint(1.0) == 0 && __hiloint2double(0x3ff00000, 0) == 1);
  // Ties are rounded to even.
  EXPECT(__float2int_rn(f) == -2 && __float2int_rz(f) == -2 && __float2int_ru(f) == -2 && __float2int_rd(f) == -3);
  EXPECT(__float2int_rn(3.5f) == 4 && __float2int_rn(1e20f) == 0x7fffffff && __float2int_rz(NAN) == 0);
  EXPECT(__float2uint_rn(2.5f) == 2 && __float2uint_rz(f) == 0 && __float2ll_rn(-1e10f) == -10000000000ll);
  EXPECT(__double2int_rn(d) == -2 && __double2ll_rz(1e300) == 0x7fffffffffffffffll &&
         __double2uint_rn(3e9) == 3000000000u);
  EXPECT(__int2float_rn(16777217) == 16777216 && __uint2float_rn(u) == 4026531840.0f && __ll2float_rn(ll) == -3);
  EXPECT(__int2double_rn(i) == -7 && __ull2double_rn(1) == 1 && __double2float_rn(1e300) == INFINITY);
  EXPECT(__fmaf_rn(f, f, 1) == 7.25f && __fadd_rn(f, 1) == -1.5f && __fsub_rn(f, 1) == -3.5f && __fmul_rn(f, 2) == -5);
  EXPECT(__fdiv_rn(f, 2) == -1.25f && __frcp_rn(4) == 0.25f && __fsqrt_rn(9) == 3 && __frsqrt_rn(4) == 0.5f);
  EXPECT(__dadd_rn(d, 1) == -1.5 && __dmul_rn(d, d) == 6.25 && __ddiv_rn(d, 2) == -1.25 && __fma_rn(d, d, 1.0) == 7.25);
  EXPECT(rsqrtf(16) == 0.25f && rsqrt(16.0) == 0.25 && rcbrtf(8) == 0.5f && rhypotf(3, 4) == 0.2f &&
         norm3df(2, 3, 6) == 7);
  EXPECT(norm4df(1, 1, 1, 1) == 2 && fdividef(f, 2) == -1.25f && __fdividef(6, 3) == 2 && __saturatef(f) == 0);
  EXPECT(fabsf(__expf(1) - 2.7182818f) < 1e-5f && fabsf(__logf(10) - 2.3025851f) < 1e-5f && __powf(2, 3) > 7.9999f);
  EXPECT(fabsf(__log2f(8) - 3) < 1e-5f && fabsf(__log10f(100) - 2) < 1e-5f && fabsf(__exp10f(2) - 100) < 1e-3f);
  EXPECT(fabsf(__tanf(0.5f) - 0.5463025f) < 1e-5f && fabsf(sinpif(0.5f) - 1) < 1e-6f && fabsf(cospif(1) + 1) < 1e-6f);
  EXPECT(exp2f(3) == 8 && exp10f(2) == 100 && fabsf(normcdff(0) - 0.5f) < 1e-6f && erff(0) == 0 &&
         copysignf(3, f) == -3);
  float sine, cosine;
  sincosf(0.5f, &sine, &cosine);
  EXPECT(sine == sinf(0.5f) && cosine == cosf(0.5f));
  __sincosf(0.5f, &sine, &cosine);
  EXPECT(fabsf(sine - sinf(0.5f)) < 1e-5f && fabsf(cosine - cosf(0.5f)) < 1e-5f);
  EXPECT(floorf(f) == -3 && ceilf(f) == -2 && roundf(f) == -3 && truncf(f) == -2 && rintf(f) == -2 &&
         fmodf(f, 2) == -0.5f);
  EXPECT(make_ulonglong2(1, 2).y == 2 && make_float1(3).x == 3 && make_uchar4(1, 2, 3, 4).w == 4 &&
         make_int3(1, 2, 3).z == 3);
  // These numbers are also the pattern in variables without a value (tools/cuda_check.py).
  unsigned odd = 0xaaaaaaaa, even = 0x55555555, bytes = 0xfefefefe, ones = 0xffffffff, mark = 0xfffefffe;
  unsigned long long wide = 0xfefefefefefefefeull, wide_odd = 0xaaaaaaaaaaaaaaaaull;
  unsigned many[4] = {0xfefefefe, 0xfefefefe, 0xfefefefe, 0xfefefefe};
  EXPECT((odd | even) == ones && (odd & even) == 0 && bytes + 0x01010102 == 0 && mark + 0x10002 == 0);
  EXPECT(wide >> 32 == bytes && wide_odd >> 1 == 0x5555555555555555ull && many[u % 4] == bytes);
}

__global__ void halves_of_threads(int* count, int* lines, half h, nv_bfloat16 b) {
  // h = -2.5, b = 3
  half2 pair = __halves2half2(h, __float2half(4.0f));
  EXPECT(__half2float(__habs(h)) == 2.5f && __half2float(__hneg(h)) == 2.5f && !__hisnan(h) && !__hisinf(h));
  EXPECT(__half2float(hsqrt(__high2half(pair))) == 2 && __half2float(hrcp(__high2half(pair))) == 0.25f);
  EXPECT(__half2float(hexp(__float2half(0.0f))) == 1 && __half2float(hfloor(h)) == -3 && __half2float(hceil(h)) == -2);
  EXPECT(__half2int_rn(h) == -2 && __half2int_rz(h) == -2 && __half2float(__int2half_rn(7)) == 7);
  EXPECT(__half2float(__hadd_sat(h, h)) == 0 && __half_as_short(__short_as_half(0x3c00)) == 0x3c00);
  EXPECT(__low2float(__lowhigh2highlow(pair)) == 4 && __high2float(__low2half2(pair)) == -2.5f);
  EXPECT(__low2float(__hmax2(pair, __float2half2_rn(1.0f))) == 1 && __high2float(__hneg2(pair)) == -4);
  pair += make_half2(h, h);
  EXPECT(__low2float(pair) == -5 && __high2float(pair) == 1.5f && __low2float(-pair) == 5);
  EXPECT(__bfloat162float(__habs(__hneg(b))) == 3 && __bfloat16_as_ushort(b) == 0x4040);
  EXPECT(__bfloat162float(__ushort_as_bfloat16(0x3f80)) == 1 && __bfloat162int_rn(b) == 3);
  EXPECT(__high2float(__hmin2(make_bfloat162(b, b), __float2bfloat162_rn(1.0f))) == 1);
  // 7 * 37 - 2^-20 is rounded once: rounded to 259 first, it would be halfway between 258 and 260.
  EXPECT(__bfloat162float(__hfma(__float2bfloat16(7.0f), __float2bfloat16(37.0f), __float2bfloat16(-0x1p-20f))) == 258);
}

__global__ void atomics_of_threads(int* count, int* lines, int* i, unsigned* u, unsigned long long* ull, long long* ll,
                                   float* f, double* d, half* h, half2* h2, nv_bfloat16* b) {
  // Each starts with the value 5.
  EXPECT(atomicAdd(i, 3) == 5 && atomicSub(i, 1) == 8 && atomicExch(i, -4) == 7 && atomicMin(i, 2) == -4);
  EXPECT(atomicMax(i, 6) == -4 && atomicAnd(i, 12) == 6 && atomicOr(i, 3) == 4 && atomicXor(i, 5) == 7);
  EXPECT(atomicCAS(i, 2, 9) == 2 && atomicCAS(i, 2, 1) == 9 && *i == 9);
  EXPECT(atomicAdd(u, 3) == 5 && atomicSub(u, 9) == 8 && atomicMin(u, 2) == 0xffffffffu && atomicMax(u, 7) == 2);
  EXPECT(atomicInc(u, 7) == 7 && atomicInc(u, 7) == 0 && atomicDec(u, 7) == 1 && atomicDec(u, 7) == 0 && *u == 7);
  EXPECT(atomicAnd(u, 5) == 7 && atomicOr(u, 8) == 5 && atomicXor(u, 1) == 13 && atomicExch(u, 3) == 12);
  EXPECT(atomicCAS(u, 3, 4) == 3 && *u == 4);
  EXPECT(atomicAdd(ull, 1ull << 40) == 5 && atomicMax(ull, 7ull) == (1ull << 40) + 5 && atomicMin(ull, 7ull) > 7);
  EXPECT(atomicAnd(ull, 6ull) == 7 && atomicOr(ull, 1ull << 60) == 6 && atomicExch(ull, 1ull) == (1ull << 60) + 6);
  EXPECT(atomicXor(ull, 3ull) == 1 && atomicCAS(ull, 2ull, 8ull) == 2 && *ull == 8);
  EXPECT(atomicMin(ll, -3ll) == 5 && atomicMax(ll, 2ll) == -3 && *ll == 2);
  EXPECT(atomicAdd(f, 1.5f) == 5 && atomicExch(f, 2.0f) == 6.5f && atomicAdd(d, 0.25) == 5 && *d == 5.25);
  EXPECT(__half2float(atomicAdd(h, __float2half(1.0f))) == 5 && __half2float(*h) == 6);
  EXPECT(__high2float(atomicAdd(h2, __float2half2_rn(1.0f))) == 5 && __low2float(*h2) == 6);
  EXPECT(__bfloat162float(atomicAdd(b, __float2bfloat16(1.0f))) == 5 && __bfloat162float(*b) == 6);
  EXPECT(atomicAdd_block(i, 1) == 9 && atomicMax_system(i, 20) == 10 && atomicCAS_block(i, 20, 3) == 20 && *i == 3);
}

__global__ void warps(int* count, int* lines, const float4* loaded) {
  int lane = threadIdx.x;
  long long ll = (1ll << 40) + lane;
  double d = lane + 0.5;
  EXPECT(__shfl_sync(~0u, ll, 3) == (1ll << 40) + 3 && __shfl_xor_sync(~0u, d, 1) == (lane ^ 1) + 0.5);
  EXPECT(__shfl_down_sync(~0u, d, 4) == (lane < 28 ? lane + 4.5 : d) && __shfl_up_sync(~0u, ll, 1) == ll - (lane > 0));
  EXPECT(__shfl_sync(~0u, static_cast<unsigned long long>(ll), 2, 8) == (1ull << 40) + lane / 8 * 8 + 2);
  EXPECT(__reduce_add_sync(~0u, lane) == 496 && __reduce_max_sync(~0u, -lane) == 0 &&
         __reduce_min_sync(~0u, -lane) == -31);
  EXPECT(__reduce_or_sync(~0u, 1u << lane) == ~0u && __reduce_xor_sync(~0u, 1u) == 0 &&
         __reduce_and_sync(~0u, 6u) == 6);
  EXPECT(__ballot_sync(~0u, lane < 4) == 15 && __any_sync(~0u, lane == 7) && !__all_sync(~0u, lane == 7));
  int all = -1;
  EXPECT(__match_any_sync(~0u, lane / 16) == (lane < 16 ? 0xffffu : 0xffff0000u));
  EXPECT(__match_any_sync(~0u, 0.5f * lane) == 1u << lane && __match_any_sync(~0u, ll / 2) == 3u << lane / 2 * 2);
  EXPECT(__match_all_sync(~0u, 5, &all) == ~0u && all != 0);
  EXPECT(__match_all_sync(~0u, ll, &all) == 0 && all == 0);
  EXPECT(__activemask() == ~0u);
  if (lane % 3 == 0) {
    // Lanes that come to this call together choose one lane.
    unsigned mask = __activemask(), first = __ffs(mask) - 1, order = __popc(mask & ((1u << lane) - 1));
    EXPECT(mask == 0x49249249u && __shfl_sync(mask, lane, first) == 0 && order == lane / 3);
  }
  __syncwarp();
  EXPECT(__syncthreads_count(lane < 5) == 5 && __syncthreads_and(lane >= 0) && !__syncthreads_or(lane > 31));
  EXPECT(__ldg(loaded).y == 2 && __ldcg(&loaded->x) == 1 && __ldcs(&loaded->z) == 3 && __ldca(&loaded->w) == 4);
  __shared__ float stored[2];
  if (lane == 0) {
    __stcg(&stored[0], 1.0f);
    __stcs(&stored[1], 2.0f);
  }
  __syncthreads();
  EXPECT(stored[0] + stored[1] == 3 && clock64() >= 0);
}

// The lanes end behind their last call, one after the other.
__global__ void lanes_that_end(unsigned* equal, int* all) {
  equal[threadIdx.x] = __match_all_sync(~0u, 5, &all[threadIdx.x]);
}

__constant__ float symbol[4];
__global__ void copies(const float* in, float* out, int pitch) {
  out[threadIdx.y * pitch + threadIdx.x] = in[threadIdx.y * pitch + threadIdx.x] * symbol[threadIdx.x];
}

// The same for functions of the host.
int wrong_on_host() {
  int wrong = 0, number = -1;
#define EXPECT_ON_HOST(condition) \
  if (!(condition)) ++wrong, std::printf("line %d\n", __LINE__)
  cudaDeviceProp properties;
  EXPECT_ON_HOST(cudaGetDeviceCount(&number) == cudaSuccess && number > 0);
  EXPECT_ON_HOST(cudaGetDevice(&number) == cudaSuccess && number == 0);
  EXPECT_ON_HOST(cudaGetDeviceProperties(&properties, 0) == cudaSuccess && properties.warpSize == 32);
  EXPECT_ON_HOST(properties.maxThreadsPerBlock == 1024 && properties.sharedMemPerBlock == 48 << 10 &&
                 properties.major >= 7);
  EXPECT_ON_HOST(cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess &&
                 number == properties.multiProcessorCount);
  EXPECT_ON_HOST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, copies, 1024, 0) == cudaSuccess && number == 2);
  EXPECT_ON_HOST(cudaRuntimeGetVersion(&number) == cudaSuccess && number >= 11000);
  EXPECT_ON_HOST(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  EXPECT_ON_HOST(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue");
  float values[4] = {1, 2, 3, 4}, rows[2][3] = {{1, 2, 3}, {4, 5, 6}}, *pinned, *in, *out;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  EXPECT_ON_HOST(cudaStreamCreate(&stream) == cudaSuccess && cudaStreamQuery(stream) == cudaSuccess);
  EXPECT_ON_HOST(cudaEventCreate(&begin) == cudaSuccess);
  EXPECT_ON_HOST(cudaEventCreateWithFlags(&end, cudaEventDefault) == cudaSuccess);
  EXPECT_ON_HOST(cudaHostAlloc(&pinned, sizeof rows, cudaHostAllocDefault) == cudaSuccess);
  EXPECT_ON_HOST(cudaMalloc(&in, 2 * 32) == cudaSuccess && cudaMallocAsync(&out, 2 * 32, stream) == cudaSuccess);
  EXPECT_ON_HOST(cudaMemsetAsync(in, 0, 2 * 32, stream) == cudaSuccess);
  EXPECT_ON_HOST(cudaMemcpyToSymbolAsync(symbol, values, sizeof values, 0, cudaMemcpyHostToDevice, stream) ==
                 cudaSuccess);
  EXPECT_ON_HOST(cudaMemcpy2D(in, 32, rows, 12, 12, 2, cudaMemcpyHostToDevice) == cudaSuccess);
  EXPECT_ON_HOST(cudaEventRecord(begin, stream) == cudaSuccess);
  cuda_launch(copies, {1, dim3(3, 2), 0, stream}, in, out, 8);
  EXPECT_ON_HOST(cudaGetLastError() == cudaSuccess && cudaEventRecord(end, stream) == cudaSuccess);
  EXPECT_ON_HOST(cudaEventSynchronize(end) == cudaSuccess && cudaEventQuery(end) == cudaSuccess);
  EXPECT_ON_HOST(cudaEventElapsedTime(&values[0], begin, end) == cudaSuccess && values[0] >= 0);
  EXPECT_ON_HOST(cudaMemcpy2D(pinned, 12, out, 32, 12, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
  EXPECT_ON_HOST(cudaStreamSynchronize(stream) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
  EXPECT_ON_HOST(pinned[1] == 4 && pinned[2] == 9 && pinned[3] == 4 && pinned[5] == 18);
  void* address;
  size_t bytes = 0;
  EXPECT_ON_HOST(cudaGetSymbolAddress(&address, symbol) == cudaSuccess && address != nullptr);
  EXPECT_ON_HOST(cudaGetSymbolSize(&bytes, symbol) == cudaSuccess && bytes == 16);
  EXPECT_ON_HOST(cudaFreeAsync(out, stream) == cudaSuccess && cudaFree(in) == cudaSuccess);
  EXPECT_ON_HOST(cudaFreeHost(pinned) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess);
  EXPECT_ON_HOST(cudaEventDestroy(begin) == cudaSuccess && cudaEventDestroy(end) == cudaSuccess);
  return wrong;
}

int main() {
  Buffer<int> count(std::vector<int>{0}), lines(std::vector<int>(64));
  cuda_launch(numbers_of_threads, {1, 1}, count.data, lines.data, -2.5f, -7, 0xf0000001u, -3ll);
  cuda_launch(halves_of_threads, {1, 1}, count.data, lines.data, __float2half(-2.5f), __float2bfloat16(3.0f));
  Buffer<int> i(std::vector<int>{5});
  Buffer<unsigned> u(std::vector<unsigned>{5});
  Buffer<unsigned long long> ull(std::vector<unsigned long long>{5});
  Buffer<long long> ll(std::vector<long long>{5});
  Buffer<float> f(std::vector<float>{5});
  Buffer<double> d(std::vector<double>{5});
  Buffer<half> h(std::vector<half>{__float2half(5.0f)});
  Buffer<half2> h2(std::vector<half2>{__float2half2_rn(5.0f)});
  Buffer<nv_bfloat16> b(std::vector<nv_bfloat16>{__float2bfloat16(5.0f)});
  cuda_launch(atomics_of_threads, {1, 1}, count.data, lines.data, i.data, u.data, ull.data, ll.data, f.data, d.data,
              h.data, h2.data, b.data);
  Buffer<float4> loaded(std::vector<float4>{make_float4(1, 2, 3, 4)});
  cuda_launch(warps, {1, 32}, count.data, lines.data, loaded.data);
  Buffer<unsigned> equal(32);
  Buffer<int> all(32);
  cuda_launch(lanes_that_end, {1, 32}, equal.data, all.data);
  int wrong = count.host()[0];
  for (int lane = 0; lane < 32; ++lane) wrong += equal.host()[lane] != ~0u || all.host()[lane] == 0;
  for (int n = 0; n < count.host()[0] && n < 64; ++n) std::printf("line %d\n", lines.host()[n]);
  return wrong + wrong_on_host();
}
