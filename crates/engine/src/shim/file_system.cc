// A RocksDB file system that asks before and tells after each I/O. See shim/mod.rs for the other side of the C ABI.
//
// Everything that can move bytes to or from the device is overridden here; what is only forwarded (names, locks,
// attributes) moves none. Two ways past a hook are closed: readahead by the kernel (Prefetch, Hint) and
// asynchronous reads (ReadAsync, io_uring) are not offered, so that RocksDB reads ahead through Read.

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

using namespace ROCKSDB_NAMESPACE;

// Layout of rocksdb_env_t in RocksDB's db/c.cc, which no header declares. The Rust side checks the version.
struct rocksdb_env_t {
  Env* rep;
  bool is_default;
};

extern "C" {

// Mirrored in shim/mod.rs (RawIo, RawHook).
struct entremet_io {
  uint64_t offset;
  uint64_t bytes;
  uint8_t op;        // 0 read, 1 write, 2 sync, 3 delete
  uint8_t file;      // 0 data, 1 log, 2 metadata, 3 directory
  uint8_t activity;  // Env::IOActivity; 0x7f unknown
  uint8_t urgent;    // background work that writers wait for
};

struct entremet_hook {
  void* context;
  // Returns when the I/O may begin; the number is given back to `end`. `fault` is 0, and is set if the I/O is not to
  // be done: 1 it fails, 2 there is no space.
  uint64_t (*begin)(void* context, const entremet_io* io, uint8_t* fault);
  // `bytes` were moved; `ok`: without an error (end of file is none).
  void (*end)(void* context, const entremet_io* io, uint64_t token, uint64_t bytes, uint8_t ok);
  // Largest I/O; longer ones are cut. A multiple of 4096.
  uint64_t (*chunk)(void* context);
  void (*drop)(void* context);
};

}  // extern "C"

namespace {

constexpr uint8_t kRead = 0, kWrite = 1, kSync = 2, kDelete = 3;
constexpr uint8_t kData = 0, kLog = 1, kMetadata = 2, kDirectory = 3;
constexpr uint64_t kPage = 4096;

class Hook {
 public:
  explicit Hook(const entremet_hook& hook) : hook_(hook) {}
  ~Hook() { hook_.drop(hook_.context); }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  uint64_t Chunk() const { return std::max(hook_.chunk(hook_.context), kPage); }

  // Asks, does, tells. `io_call` returns the status and sets the bytes that were moved.
  template <typename Call>
  IOStatus Do(uint8_t op, uint8_t file, const IOOptions& options, uint64_t offset, uint64_t bytes, Call io_call) const {
    // Flush and compaction are given this priority when writers are delayed or stopped.
    const bool urgent = options.rate_limiter_priority == Env::IO_USER;
    const entremet_io io{offset, bytes, op, file, static_cast<uint8_t>(options.io_activity), urgent};
    uint8_t fault = 0;
    const uint64_t token = hook_.begin(hook_.context, &io, &fault);
    uint64_t moved = 0;
    IOStatus status = fault == 0 ? io_call(&moved) : Broken(fault);
    hook_.end(hook_.context, &io, token, moved, status.ok());
    return status;
  }

 private:
  static IOStatus Broken(uint8_t fault) {
    return fault == 2 ? IOStatus::NoSpace("No space left on device") : IOStatus::IOError("Input/output error");
  }

  const entremet_hook hook_;
};

using SharedHook = std::shared_ptr<const Hook>;

bool EndsWith(const std::string& name, const char* end) {
  const std::string tail(end);
  return name.size() >= tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
}

// IOOptions.type is never set by RocksDB, so a file is known by its name.
uint8_t KindOf(const std::string& name) {
  if (EndsWith(name, ".sst") || EndsWith(name, ".blob")) {
    return kData;
  }
  return EndsWith(name, ".log") ? kLog : kMetadata;
}

// Reads `n` bytes in chunks into `scratch` through `read(offset, n, result, scratch)`.
template <typename Read>
IOStatus ReadChunks(const Hook& hook, uint8_t file, const IOOptions& options, uint64_t offset, size_t n, Slice* result,
                    char* scratch, Read read) {
  const uint64_t chunk = hook.Chunk();
  size_t done = 0;
  const char* start = nullptr;
  do {
    const size_t ask = static_cast<size_t>(std::min<uint64_t>(chunk, n - done));
    char* const place = scratch == nullptr ? nullptr : scratch + done;
    Slice part;
    IOStatus status = hook.Do(kRead, file, options, offset + done, ask, [&](uint64_t* moved) {
      IOStatus read_status = read(offset + done, ask, &part, place);
      *moved = read_status.ok() ? part.size() : 0;
      return read_status;
    });
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
  SequentialFile(std::unique_ptr<FSSequentialFile>&& file, SharedHook hook, uint8_t kind)
      : FSSequentialFileOwnerWrapper(std::move(file)), hook_(std::move(hook)), kind_(kind) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch, IODebugContext* dbg) override {
    IOStatus status = ReadChunks(*hook_, kind_, options, offset_, n, result, scratch,
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
    return ReadChunks(*hook_, kind_, options, offset, n, result, scratch,
                      [&](uint64_t at, size_t ask, Slice* part, char* place) {
                        return target()->PositionedRead(at, ask, options, part, place, dbg);
                      });
  }

 private:
  const SharedHook hook_;
  const uint8_t kind_;
  uint64_t offset_ = 0;
};

class RandomAccessFile : public FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(std::unique_ptr<FSRandomAccessFile>&& file, SharedHook hook, uint8_t kind)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), hook_(std::move(hook)), kind_(kind) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    return ReadChunks(*hook_, kind_, options, offset, n, result, scratch,
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
  const uint8_t kind_;
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
  WritableFile(std::unique_ptr<FSWritableFile>&& file, SharedHook hook, uint8_t kind, uint64_t size)
      : FSWritableFileOwnerWrapper(std::move(file)), hook_(std::move(hook)), kind_(kind), size_(size) {}

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

  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* dbg) override {
    size_ = size;
    return target()->Truncate(size, options, dbg);
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    dirty_.Clean();
    return hook_->Do(kSync, kind_, options, 0, 0, [&](uint64_t*) { return target()->Sync(options, dbg); });
  }

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    dirty_.Clean();
    return hook_->Do(kSync, kind_, options, 0, 0, [&](uint64_t*) { return target()->Fsync(options, dbg); });
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
    return hook_->Do(kWrite, kind_, options, offset, bytes, [&](uint64_t* moved) {
      IOStatus status = put(data, offset);
      if (status.ok()) {
        *moved = bytes;
        size_ = std::max<uint64_t>(size_, offset + data.size());
      }
      return status;
    });
  }

  const SharedHook hook_;
  const uint8_t kind_;
  // Only RocksDB's one writer of a file uses it.
  uint64_t size_;
  DirtyPages dirty_;
};

class RandomRWFile : public FSRandomRWFileOwnerWrapper {
 public:
  RandomRWFile(std::unique_ptr<FSRandomRWFile>&& file, SharedHook hook, uint8_t kind)
      : FSRandomRWFileOwnerWrapper(std::move(file)), hook_(std::move(hook)), kind_(kind) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kWrite, kind_, options, offset, data.size(), [&](uint64_t* moved) {
      IOStatus status = target()->Write(offset, data, options, dbg);
      *moved = status.ok() ? data.size() : 0;
      return status;
    });
  }

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    return ReadChunks(*hook_, kind_, options, offset, n, result, scratch,
                      [&](uint64_t at, size_t ask, Slice* part, char* place) {
                        return target()->Read(at, ask, options, part, place, dbg);
                      });
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kSync, kind_, options, 0, 0, [&](uint64_t*) { return target()->Sync(options, dbg); });
  }

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kSync, kind_, options, 0, 0, [&](uint64_t*) { return target()->Fsync(options, dbg); });
  }

 private:
  const SharedHook hook_;
  const uint8_t kind_;
};

class Directory : public FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<FSDirectory>&& directory, FSDirectory* target, SharedHook hook)
      : FSDirectoryWrapper(std::move(directory)), target_(target), hook_(std::move(hook)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kSync, kDirectory, options, 0, 0, [&](uint64_t*) { return target_->Fsync(options, dbg); });
  }

  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg, const DirFsyncOptions& reason) override {
    return hook_->Do(kSync, kDirectory, options, 0, 0,
                     [&](uint64_t*) { return target_->FsyncWithDirOptions(options, dbg, reason); });
  }

 private:
  FSDirectory* const target_;
  const SharedHook hook_;
};

class HookedFileSystem : public FileSystemWrapper {
 public:
  HookedFileSystem(const std::shared_ptr<FileSystem>& target, SharedHook hook)
      : FileSystemWrapper(target), hook_(std::move(hook)) {}

  static const char* kClassName() { return "EntremetFileSystem"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result, IODebugContext* dbg) override {
    IOStatus status = target()->NewSequentialFile(name, options, result, dbg);
    if (status.ok()) {
      *result = std::make_unique<SequentialFile>(std::move(*result), hook_, KindOf(name));
    }
    return status;
  }

  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) override {
    IOStatus status = target()->NewRandomAccessFile(name, options, result, dbg);
    if (status.ok()) {
      *result = std::make_unique<RandomAccessFile>(std::move(*result), hook_, KindOf(name));
    }
    return status;
  }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    return Wrap(name, result, target()->NewWritableFile(name, options, result, dbg), 0);
  }

  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    uint64_t size = 0;
    if (!target()->GetFileSize(name, options.io_options, &size, dbg).ok()) {
      size = 0;
    }
    return Wrap(name, result, target()->ReopenWritableFile(name, options, result, dbg), size);
  }

  IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name, const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    return Wrap(name, result, target()->ReuseWritableFile(name, old_name, options, result, dbg), 0);
  }

  IOStatus NewRandomRWFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSRandomRWFile>* result, IODebugContext* dbg) override {
    IOStatus status = target()->NewRandomRWFile(name, options, result, dbg);
    if (status.ok()) {
      *result = std::make_unique<RandomRWFile>(std::move(*result), hook_, KindOf(name));
    }
    return status;
  }

  IOStatus NewDirectory(const std::string& name, const IOOptions& options, std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override {
    IOStatus status = target()->NewDirectory(name, options, result, dbg);
    if (status.ok()) {
      FSDirectory* const directory = result->get();
      *result = std::make_unique<Directory>(std::move(*result), directory, hook_);
    }
    return status;
  }

  IOStatus SyncFile(const std::string& name, const FileOptions& file_options, const IOOptions& options, bool use_fsync,
                    IODebugContext* dbg) override {
    return hook_->Do(kSync, KindOf(name), options, 0, 0, [&](uint64_t*) {
      return target()->SyncFile(name, file_options, options, use_fsync, dbg);
    });
  }

  IOStatus DeleteFile(const std::string& name, const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kDelete, KindOf(name), options, 0, 0,
                     [&](uint64_t*) { return target()->DeleteFile(name, options, dbg); });
  }

  IOStatus Truncate(const std::string& name, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kDelete, KindOf(name), options, size, 0,
                     [&](uint64_t*) { return target()->Truncate(name, size, options, dbg); });
  }

  void SupportedOps(int64_t& operations) override {
    target()->SupportedOps(operations);
    for (auto past_the_hook : {kAsyncIO, kFSBuffer, kFSPrefetch}) {
      operations &= ~(int64_t{1} << past_the_hook);
    }
  }

 private:
  IOStatus Wrap(const std::string& name, std::unique_ptr<FSWritableFile>* result, IOStatus status, uint64_t size) {
    if (status.ok()) {
      *result = std::make_unique<WritableFile>(std::move(*result), hook_, KindOf(name), size);
    }
    return status;
  }

  const SharedHook hook_;
};

}  // namespace

// An environment over the default one's threads and clock whose files ask `hook`. Takes over the hook's context, which
// is dropped with the last file. The caller destroys it with rocksdb_env_destroy.
extern "C" rocksdb_env_t* entremet_env_new(const entremet_hook* hook) {
  auto shared = std::make_shared<const Hook>(*hook);
  auto files = std::make_shared<HookedFileSystem>(FileSystem::Default(), std::move(shared));
  auto env = NewCompositeEnv(files);
  return new rocksdb_env_t{env.release(), false};
}
