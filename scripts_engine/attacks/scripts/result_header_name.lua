-- expect: failed: invalid name
return Reply({ headers = { ["X A"] = "a" } })
