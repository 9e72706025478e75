-- expect: failed: status must be
return Reply({ status = 101 })
