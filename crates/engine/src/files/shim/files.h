// Files whose every I/O asks a hook. What RocksDB passes in one call is cut into chunks, each with a turn of its own.

#pragma once

#include <rocksdb/file_system.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "hook.h"

namespace entremet {

// Who writes a file steps back after so much of it: 0.1 ms of compression or so.
constexpr uint64_t kStepBack = 65536;

// Reads `n` bytes in chunks into `scratch` through `read(offset, n, result, scratch)`.
template <typename Read>
IOStatus ReadChunks(const Hook& hook, FileId file, const IOOptions& options, uint64_t offset, size_t n, Slice* result,
                    char* scratch, Read read) {
  const uint64_t chunk = hook.Chunk();
  size_t done = 0;
  const char* start = nullptr;
  do {
    const size_t ask = static_cast<size_t>(std::min<uint64_t>(chunk, n - done));
    char* const place = scratch == nullptr ? nullptr : scratch + done;
    Slice part;
    const auto whole = [&](uint64_t* moved) {
      IOStatus read_status = read(offset + done, ask, &part, place);
      *moved = read_status.ok() ? part.size() : 0;
      return read_status;
    };
    const auto half = [&](uint64_t* moved) {
      IOStatus read_status = whole(moved);
      part = Slice(part.data(), part.size() / 2);
      return read_status;
    };
    IOStatus status = hook.DoOrHalf(kRead, file, options, offset + done, ask, whole, half);
    if (!status.ok()) {
      *result = Slice();
      return status;
    }
    if (start == nullptr) {
      start = part.data();
    }
    done += part.size();
    if (part.size() < ask) {
      break;  // End of file.
    }
  } while (done < n);
  *result = Slice(start, done);
  return IOStatus::OK();
}

class SequentialFile : public FSSequentialFileOwnerWrapper {
 public:
  SequentialFile(std::unique_ptr<FSSequentialFile>&& file, SharedHook hook, FileId id)
      : FSSequentialFileOwnerWrapper(std::move(file)), hook_(std::move(hook)), file_(id) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch, IODebugContext* dbg) override {
    IOStatus status = ReadChunks(*hook_, file_, options, offset_, n, result, scratch,
                                 [&](uint64_t, size_t ask, Slice* part, char* place) {
                                   return target()->Read(ask, options, part, place, dbg);
                                 });
    offset_ += result->size();
    return status;
  }

  IOStatus Skip(uint64_t n) override {
    offset_ += n;
    return target()->Skip(n);
  }

  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                          IODebugContext* dbg) override {
    return ReadChunks(*hook_, file_, options, offset, n, result, scratch,
                      [&](uint64_t at, size_t ask, Slice* part, char* place) {
                        return target()->PositionedRead(at, ask, options, part, place, dbg);
                      });
  }

 private:
  const SharedHook hook_;
  const FileId file_;
  uint64_t offset_ = 0;
};

class RandomAccessFile : public FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(std::unique_ptr<FSRandomAccessFile>&& file, SharedHook hook, FileId id)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), hook_(std::move(hook)), file_(id) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    return ReadChunks(*hook_, file_, options, offset, n, result, scratch,
                      [&](uint64_t at, size_t ask, Slice* part, char* place) {
                        return target()->Read(at, ask, options, part, place, dbg);
                      });
  }

  // One after the other: while one request waits for its turn nothing else may be held.
  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options, IODebugContext* dbg) override {
    for (size_t i = 0; i < count; i++) {
      FSReadRequest& request = requests[i];
      request.status = Read(request.offset, request.len, options, &request.result, request.scratch, dbg);
    }
    return IOStatus::OK();
  }

  IOStatus Prefetch(uint64_t, size_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("reads ahead go through Read");
  }

  void Hint(AccessPattern) override {}

  // The base class reads at once, through Read.
  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options, std::function<void(FSReadRequest&, void*)> done,
                     void* argument, void** handle, IOHandleDeleter* deleter, IODebugContext* dbg) override {
    return FSRandomAccessFile::ReadAsync(request, options, std::move(done), argument, handle, deleter, dbg);
  }

  bool SubmitReadAsync(FSReadRequest& request, const IOOptions& options, std::function<void(FSReadRequest&)> done,
                       IODebugContext* dbg) override {
    return FSRandomAccessFile::SubmitReadAsync(request, options, std::move(done), dbg);
  }

 private:
  const SharedHook hook_;
  const FileId file_;
};

// What a buffered file gives the device: pages, when they are written back. A page that is appended to ten times
// between two syncs is written once, and one that is synced ten times while it fills, ten times.
class DirtyPages {
 public:
  // Bytes of pages that become dirty with [offset, offset + bytes).
  uint64_t Add(uint64_t offset, uint64_t bytes) {
    const uint64_t dirty_until = dirty_until_.load(std::memory_order_relaxed);
    const uint64_t end = (offset + bytes + kPage - 1) / kPage * kPage;
    const uint64_t start = std::max(offset / kPage * kPage, dirty_until);
    dirty_until_.store(std::max(dirty_until, end), std::memory_order_relaxed);
    return end > start ? end - start : 0;
  }
  void Clean() { dirty_until_.store(0, std::memory_order_relaxed); }

 private:
  // RocksDB syncs a log while it appends to it. Whichever comes last counts: a page more or less.
  std::atomic<uint64_t> dirty_until_{0};
};

class WritableFile : public FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<FSWritableFile>&& file, SharedHook hook, FileId id, uint64_t size)
      : FSWritableFileOwnerWrapper(std::move(file)), hook_(std::move(hook)), file_(id), size_(size) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return Write(size_, data, options, [&](const Slice& part, uint64_t) { return target()->Append(part, options, dbg); });
  }

  // A checksum covers the whole of the data, so it is not cut.
  IOStatus Append(const Slice& data, const IOOptions& options, const DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return WriteOnce(size_, data, options,
                     [&](const Slice& part, uint64_t) { return target()->Append(part, options, info, dbg); });
  }

  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    return Write(offset, data, options,
                 [&](const Slice& part, uint64_t at) { return target()->PositionedAppend(part, at, options, dbg); });
  }

  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const DataVerificationInfo& info, IODebugContext* dbg) override {
    return WriteOnce(offset, data, options, [&](const Slice& part, uint64_t at) {
      return target()->PositionedAppend(part, at, options, info, dbg);
    });
  }

  // Called for each block and record, before anything is buffered. Who writes much computes much (compression, checksums), and
  // would keep its processor until the kernel's next tick, 4 ms later, from a thread that answers clients.
  void PrepareWrite(size_t offset, size_t bytes, const IOOptions& options, IODebugContext* dbg) override {
    if (offset / kStepBack != (offset + bytes) / kStepBack) {
      std::this_thread::yield();
    }
    target()->PrepareWrite(offset, bytes, options, dbg);
  }

  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* dbg) override {
    size_ = size;
    return target()->Truncate(size, options, dbg);
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    dirty_.Clean();
    return hook_->Do(kSync, file_, options, 0, 0, [&](uint64_t*) { return target()->Sync(options, dbg); });
  }

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    dirty_.Clean();
    return hook_->Do(kSync, file_, options, 0, 0, [&](uint64_t*) { return target()->Fsync(options, dbg); });
  }

  // Starts write-back of what was charged when it became dirty; it waits for nothing that a sync waits for.
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options, IODebugContext* dbg) override {
    return target()->RangeSync(offset, bytes, options, dbg);
  }

 private:
  template <typename Put>
  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options, Put put) {
    const uint64_t chunk = hook_->Chunk();
    uint64_t done = 0;
    do {
      const uint64_t size = std::min<uint64_t>(chunk, data.size() - done);
      IOStatus status = WriteOnce(offset + done, Slice(data.data() + done, size), options, put);
      if (!status.ok()) {
        return status;
      }
      done += size;
    } while (done < data.size());
    return IOStatus::OK();
  }

  template <typename Put>
  IOStatus WriteOnce(uint64_t offset, const Slice& data, const IOOptions& options, Put put) {
    const uint64_t bytes = use_direct_io() ? data.size() : dirty_.Add(offset, data.size());
    if (bytes == 0) {
      size_ = std::max<uint64_t>(size_, offset + data.size());
      return put(data, offset);
    }
    const auto whole = [&](uint64_t* moved) {
      IOStatus status = put(data, offset);
      if (status.ok()) {
        *moved = bytes;
        size_ = std::max<uint64_t>(size_, offset + data.size());
      }
      return status;
    };
    const auto half = [&](uint64_t*) {
      const size_t most = data.size() / 2;
      put(Slice(data.data(), use_direct_io() ? most / kPage * kPage : most), offset).PermitUncheckedError();
      return Hook::Broken(kFailed);
    };
    return hook_->DoOrHalf(kWrite, file_, options, offset, bytes, whole, half);
  }

  const SharedHook hook_;
  const FileId file_;
  // Only RocksDB's one writer of a file uses it.
  uint64_t size_;
  DirtyPages dirty_;
};

class RandomRWFile : public FSRandomRWFileOwnerWrapper {
 public:
  RandomRWFile(std::unique_ptr<FSRandomRWFile>&& file, SharedHook hook, FileId id)
      : FSRandomRWFileOwnerWrapper(std::move(file)), hook_(std::move(hook)), file_(id) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kWrite, file_, options, offset, data.size(), [&](uint64_t* moved) {
      IOStatus status = target()->Write(offset, data, options, dbg);
      *moved = status.ok() ? data.size() : 0;
      return status;
    });
  }

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    return ReadChunks(*hook_, file_, options, offset, n, result, scratch,
                      [&](uint64_t at, size_t ask, Slice* part, char* place) {
                        return target()->Read(at, ask, options, part, place, dbg);
                      });
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kSync, file_, options, 0, 0, [&](uint64_t*) { return target()->Sync(options, dbg); });
  }

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kSync, file_, options, 0, 0, [&](uint64_t*) { return target()->Fsync(options, dbg); });
  }

 private:
  const SharedHook hook_;
  const FileId file_;
};

class Directory : public FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<FSDirectory>&& directory, FSDirectory* target, SharedHook hook)
      : FSDirectoryWrapper(std::move(directory)), target_(target), hook_(std::move(hook)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kSync, FileId{kDirectory, 0}, options, 0, 0, [&](uint64_t*) { return target_->Fsync(options, dbg); });
  }

  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg, const DirFsyncOptions& reason) override {
    return hook_->Do(kSync, FileId{kDirectory, 0}, options, 0, 0,
                     [&](uint64_t*) { return target_->FsyncWithDirOptions(options, dbg, reason); });
  }

 private:
  FSDirectory* const target_;
  const SharedHook hook_;
};

}  // namespace entremet
