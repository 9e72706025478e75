-- expect: failed: NaN
return { 0 / 0 }
