-- expect: succeeded: 3000000
return tostring(#url.decode(("%zz"):rep(1e6)))
